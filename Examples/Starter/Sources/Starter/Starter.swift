import Foundation
import StarterStore

/// A device: lines that are typed become items, and items of other devices appear as they arrive.
@main
enum Starter {
  static func main() throws {
    let path = CommandLine.arguments.dropFirst().first ?? "Starter.sqlite"
    // CKContainer reads the server's address and its tokens from variables of the same beginning.
    let server = ProcessInfo.processInfo.environment["WATERSHED_CLOUDKIT_CONTAINER"]
    let store = try ItemStore(at: URL(fileURLWithPath: path), containerIdentifier: server)
    print(server.map { "Mirrored with \($0)." } ?? "No server is configured: items stay here.")
    show(store)
    let observation = store.onChange { show(store) }
    while let line = readLine() {
      if !line.isEmpty { try store.add(line) }
    }
    NotificationCenter.default.removeObserver(observation)
  }

  private static func show(_ store: ItemStore) {
    do {
      print("Items: " + (try store.titles().joined(separator: ", ")))
    } catch {
      print("The items cannot be read: \(error)")
    }
  }
}
