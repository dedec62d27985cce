import ArgumentParser
import Effects
import Foundation
import ModelGenerator

/// `watershed model adopt`: existing sources made to compile without Objective-C.
struct ModelAdoptCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "adopt",
    abstract: "Make existing managed object classes compile without Objective-C.",
    discussion: """
      Puts @objc and @objcMembers inside #if canImport(ObjectiveC), and writes \
      #keyPath(Post.title) as "title". The sources compile on Apple's platforms as before. Nothing \
      is written without --write; what was adopted is not changed again.
      """
  )

  @Argument(help: "Swift files, or folders of them.")
  var paths: [String]

  @Flag(help: "Change the files; without it, what would be done is listed.")
  var write = false

  func run() throws {
    var changed = 0
    var byHand = 0
    for path in try files() {
      let text = try String(contentsOfFile: path, encoding: .utf8)
      let result = SourceAdopter.adopt(SourceFile(path: path, text: text))
      for note in result.notes {
        try StandardOutput.print(note.isByHand ? "\(note) (by hand)" : "\(note)")
        byHand += note.isByHand ? 1 : 0
      }
      guard result.text != text else { continue }
      changed += 1
      if write { try result.text.write(toFile: path, atomically: true, encoding: .utf8) }
    }
    let files = changed == 1 ? "1 file" : "\(changed) files"
    try StandardOutput.print(
      changed == 0
        ? "Nothing to change."
        : write ? "Changed \(files)." : "Would change \(files); --write does it."
    )
    if byHand > 0 { try StandardOutput.print("\(byHand) to be changed by hand.") }
  }

  private func files() throws -> [String] {
    var files: Set<String> = []
    for path in paths {
      var isFolder: ObjCBool = false
      guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else {
        throw ValidationError("\(path): there is no such file.")
      }
      guard isFolder.boolValue else {
        files.insert(path)
        continue
      }
      for name in try FileManager.default.subpathsOfDirectory(atPath: path)
      where name.hasSuffix(".swift") && !name.split(separator: "/").contains(".build") {
        files.insert(path.hasSuffix("/") ? path + name : path + "/" + name)
      }
    }
    return files.sorted()
  }
}
