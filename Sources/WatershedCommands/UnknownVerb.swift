import ArgumentParser

/// A word where a group of commands expects one of its verbs, which the parser would report as an argument too
/// many, or by the first option after it.
struct UnknownVerb: Error, Hashable, CustomStringConvertible {
  var word: String
  /// The commands before it, such as `watershed users`.
  var group: String
  /// The verbs of the group, under all their names.
  var verbs: [String]

  /// Nil if the arguments lead to a command, or to an option of a group.
  init?(_ arguments: [String]) {
    var command: any ParsableCommand.Type = WatershedCommand.self
    var path = [Self.name(of: command)]
    // `help` takes the words of a command, and prints the help of the whole program for an unknown one.
    for word in arguments.first == "help" ? arguments.dropFirst() : arguments[...] {
      let verbs = command.configuration.subcommands
      guard !verbs.isEmpty, !word.hasPrefix("-") else { return nil }
      guard let next = verbs.first(where: { Self.names(of: $0).contains(word) }) else {
        self.word = word
        group = path.joined(separator: " ")
        self.verbs = verbs.flatMap { Self.names(of: $0) }
        return
      }
      command = next
      path.append(word)
    }
    return nil
  }

  /// The words of a command, from the program's name on.
  static func path(
    of command: any ParsableCommand.Type,
    from group: any ParsableCommand.Type = WatershedCommand.self
  ) -> [String] {
    if command == group { return [name(of: group)] }
    for verb in group.configuration.subcommands {
      let rest = path(of: command, from: verb)
      if !rest.isEmpty { return [name(of: group)] + rest }
    }
    return []
  }

  private static func name(of command: any ParsableCommand.Type) -> String { command._commandName }

  private static func names(of command: any ParsableCommand.Type) -> [String] {
    [name(of: command)] + command.configuration.aliases
  }

  var description: String {
    let guess = suggestion.map { " Did you mean '\(group) \($0)'?" } ?? ""
    return "'\(word)' is no command of '\(group)'.\(guess)\nIts commands: "
      + verbs.joined(separator: ", ")
  }

  /// Verbs of other programs for ours.
  private static let synonyms = [
    "create": "add", "new": "add", "remove": "delete", "rm": "delete", "del": "delete",
    "ls": "list", "info": "show", "get": "show", "edit": "update", "set": "update",
    "check": "verify", "start": "serve", "run": "serve",
  ]

  /// The verb that was meant: one with another name elsewhere, or one with a typing error of two letters.
  var suggestion: String? {
    if let verb = Self.synonyms[word], verbs.contains(verb) { return verb }
    return verbs.map { ($0, Self.distance(word, $0)) }
      .filter { $0.1 <= 2 && $0.1 < word.count }
      .min { $0.1 < $1.1 }?.0
  }

  /// The number of letters to insert, delete or replace.
  private static func distance(_ first: String, _ second: String) -> Int {
    let second = Array(second)
    var row = Array(0...second.count)
    for (index, letter) in first.enumerated() {
      var diagonal = row[0]
      row[0] = index + 1
      for column in second.indices {
        let replaced = diagonal + (letter == second[column] ? 0 : 1)
        diagonal = row[column + 1]
        row[column + 1] = min(replaced, diagonal + 1, row[column] + 1)
      }
    }
    return row[second.count]
  }
}
