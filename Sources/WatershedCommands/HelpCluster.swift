/// An argument such as `-hello`, which the parser would take for several options of one letter, `-h` among them: it
/// would print the help, and a script would believe that the command has done its work.
struct HelpCluster: Error, Hashable, CustomStringConvertible {
  var argument: String

  /// Nil if the arguments have none before a `--`.
  init?(_ arguments: [String]) {
    var takesNext = false
    for argument in arguments.prefix(while: { $0 != "--" }) {
      // The value of a token may begin with a hyphen.
      if takesNext {
        takesNext = false
        continue
      }
      takesNext = ["-t", "--token"].contains(argument)
      guard argument.count > 2, argument.hasPrefix("-"), !argument.hasPrefix("--"),
        argument.prefix(while: { $0 != "=" }).contains("h")
      else { continue }
      self.argument = argument
      return
    }
    return nil
  }

  /// How to give a value that begins with a hyphen.
  static let advice =
    "A value that begins with a hyphen: --OPTION=VALUE; an argument: after all options and --."

  var description: String { "\(argument) is no option. \(Self.advice)" }
}
