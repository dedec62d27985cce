import Foundation

/// A simple command of a shell line: its words, up to the next operator.
///
/// It parses the syntax of the handbook's pages: quotes, backslashes, pipes, lists, redirections,
/// command substitutions outside quotes, comments, and lines that a backslash continues.
struct ShellCommand: Hashable, Sendable {
  var words: [String]

  /// The commands of lines of a shell, a systemd unit or a CI job.
  static func read(_ lines: [String]) -> [ShellCommand] {
    var whole: [String] = []
    var isContinued = false
    for line in lines {
      let text = line.hasSuffix("\\") ? String(line.dropLast()) : line
      if isContinued, let last = whole.indices.last {
        whole[last] += text
      } else {
        whole.append(text)
      }
      isContinued = line.hasSuffix("\\")
    }
    return whole.flatMap { line in
      split(
        String(line.replacing(/^\s*(- )?(run: |ExecStart(Pre)?=)?/, with: "", maxReplacements: 1))
      )
    }
  }

  private static func split(_ line: String) -> [ShellCommand] {
    var commands: [ShellCommand] = []
    var words: [String] = []
    var word: String?
    var quote: Character?
    var isEscaped = false
    var isTarget = false
    func endWord() {
      guard let ended = word else { return }
      word = nil
      // The file of a redirection is no argument.
      if isTarget { isTarget = false } else { words.append(ended) }
    }
    func endCommand() {
      endWord()
      isTarget = false
      if !words.isEmpty { commands.append(ShellCommand(words: words)) }
      words = []
    }
    for character in line {
      if isEscaped {
        word = (word ?? "") + String(character)
        isEscaped = false
      } else if let open = quote {
        if character == open {
          quote = nil
        } else if character == "\\", open == "\"" {
          isEscaped = true
        } else {
          word = (word ?? "") + String(character)
        }
      } else {
        switch character {
        case "\\": isEscaped = true
        case "'", "\"":
          quote = character
          word = word ?? ""
        case " ", "\t": endWord()
        case "#" where word == nil:
          endCommand()
          return commands
        case "|", "&", ";", "(", ")": endCommand()
        case "<", ">":
          // A number before it is the descriptor.
          if let number = word, Int(number) != nil { word = nil }
          endWord()
          isTarget = true
        default: word = (word ?? "") + String(character)
        }
      }
    }
    endCommand()
    return commands
  }

  /// The arguments of `watershed`, if the command runs it: directly, after assignments, through
  /// `sudo`, or in a container.
  var watershedArguments: [String]? {
    var rest = words[...]
    while let first = rest.first {
      if first.wholeMatch(of: /[A-Za-z_]\w*=.*/) != nil {
        rest = rest.dropFirst()
      } else if first == "sudo" {
        rest = rest.dropFirst()
        if rest.first == "-u" { rest = rest.dropFirst(2) }
      } else if ["podman", "docker"].contains(first), rest.dropFirst().first == "exec" {
        // The options, then the container's name.
        rest = rest.dropFirst(2).drop { $0.hasPrefix("-") }.dropFirst()
      } else {
        break
      }
    }
    guard let program = rest.first, program == "watershed" || program.hasSuffix("/watershed") else {
      return nil
    }
    return Array(rest.dropFirst())
  }
}
