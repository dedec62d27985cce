/// Why a demo ended early, in one sentence, and the exit code that says so.
struct DemoFailure: Error, CustomStringConvertible {
  var description: String
  var exitCode: Int32

  init(_ description: String, exitCode: Int32 = 1) {
    self.description = description
    self.exitCode = exitCode
  }
}
