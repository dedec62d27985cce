import Foundation

/// Says what migrations do, where `-com.apple.CoreData.MigrationDebug 1` asks for it.
enum MigrationLog {
  private static let isOn: Bool = {
    let arguments = ProcessInfo.processInfo.arguments
    guard let index = arguments.firstIndex(of: "-com.apple.CoreData.MigrationDebug"),
      arguments.indices.contains(index + 1)
    else { return false }
    return (Int(arguments[index + 1]) ?? 0) > 0
  }()

  static func note(_ message: @autoclosure () -> String) {
    guard isOn else { return }
    let line = "CoreData: annotation: (migration)\t\(message())\n"
    FileHandle.standardError.write(Data(line.utf8))
  }
}
