/// Why a demo ended early, as a sentence, with its exit code.
package struct DemoFailure: Error, CustomStringConvertible {
  package var description: String
  package var exitCode: Int32

  package init(_ description: String, exitCode: Int32 = 1) {
    self.description = description
    self.exitCode = exitCode
  }
}
