/// A place in a source file and what is wrong there.
package struct SourceDiagnostic: Error, Hashable, CustomStringConvertible {
  package var file: String
  package var line: Int
  package var column: Int
  package var message: String

  /// The form that compilers use and editors know.
  package var description: String { "\(file):\(line):\(column): error: \(message)" }
}

/// A Swift source file to be read.
package struct SourceFile: Sendable {
  package var path: String
  package var text: String

  package init(path: String, text: String) {
    self.path = path
    self.text = text
  }

  var name: String { path.split(separator: "/").last.map(String.init) ?? path }
}
