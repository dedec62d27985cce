import WatershedCommands

@main
enum Watershed {
  static func main() async { await Program.main() }
}
