/// Writes the class in which the runtime looks up the names of key paths.
struct KeyPathNamesWriter {
  /// A class and those of its properties that other files can access.
  struct Names {
    var className: String
    var conditions: [String] = []
    /// The `#if` conditions of each property, by its name.
    var properties: [String: [String]] = [:]
  }

  let names: [Names]

  func write(into code: inout SwiftCode) {
    let names = names.filter { !$0.properties.isEmpty }.sorted { $0.className < $1.className }
    guard !names.isEmpty else { return }
    code.line()
    code.line("/// The names of the properties that key paths of this module's classes lead to.")
    code.block("nonisolated final class ManagedKeyPathNames: ManagedKeyPathNaming") { code in
      code.block("static func keyPathNames(of type: NSManagedObject.Type) -> [AnyKeyPath: String]")
      {
        code in
        code.line("var names: [AnyKeyPath: String] = [:]")
        for (index, entry) in names.enumerated() {
          code.conditional(entry.conditions) { code in
            code.block(
              "if let type = type as? any (\(entry.className) & NSFetchRequestResult).Type"
            ) {
              $0.line("names\(index)(type, &names)")
            }
          }
        }
        code.line("return names")
      }
      for (index, entry) in names.enumerated() {
        code.line()
        code.conditional(entry.conditions) { code in
          code.block(
            "private static func names\(index)<Root: \(entry.className)>"
              + "(_: Root.Type, _ names: inout [AnyKeyPath: String])"
          ) { code in
            for (name, conditions) in entry.properties.sorted(by: { $0.key < $1.key }) {
              code.conditional(conditions) {
                $0.line("names[\\Root.\(SwiftCode.name(name))] = \(SwiftCode.literal(name))")
              }
            }
          }
        }
      }
    }
  }
}
