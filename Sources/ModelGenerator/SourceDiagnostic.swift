/// An error at a position in a source file.
package struct SourceDiagnostic: Error, Hashable, CustomStringConvertible {
  package var file: String
  package var line: Int
  package var column: Int
  package var message: String

  /// The format of compilers, which editors recognize.
  package var description: String { "\(file):\(line):\(column): error: \(message)" }
}

/// A Swift source file to scan.
package struct SourceFile: Sendable {
  package var path: String
  package var text: String

  package init(path: String, text: String) {
    self.path = path
    self.text = text
  }

  var name: String { path.split(separator: "/").last.map(String.init) ?? path }
}
