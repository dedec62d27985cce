import Foundation

/// A page of the operator's handbook, `Documentation/Operating`, as tests read it.
struct HandbookPage: Sendable {
  static let folder = Watershed.packageRoot.appendingPathComponent("Documentation/Operating")

  /// Lines between two fences.
  struct Block: Sendable {
    /// The text after the opening fence, such as `sh` or `json watershed.json`.
    var info: String
    var lines: [String]
  }

  let url: URL
  let text: String
  /// The fenced blocks, in their order.
  let blocks: [Block]
  /// The lines outside the fenced blocks.
  let prose: [String]

  var name: String { url.lastPathComponent }

  init(_ url: URL) throws {
    self.url = url
    text = try String(contentsOf: url, encoding: .utf8)
    var blocks: [Block] = []
    var prose: [String] = []
    var isInBlock = false
    for line in text.components(separatedBy: "\n") {
      // A fence in a list item is indented.
      let fence = line.drop { $0 == " " }
      if fence.hasPrefix("```") {
        if !isInBlock { blocks.append(Block(info: String(fence.dropFirst(3)), lines: [])) }
        isInBlock.toggle()
      } else if isInBlock {
        blocks[blocks.count - 1].lines.append(line)
      } else {
        prose.append(line)
      }
    }
    self.blocks = blocks
    self.prose = prose
  }

  /// Every page, by name.
  static func all() throws -> [HandbookPage] {
    try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
      .filter { $0.pathExtension == "md" }
      .sorted { $0.lastPathComponent < $1.lastPathComponent }
      .map { try HandbookPage($0) }
  }

  /// The commands of the fenced blocks, except those of the kind `text`, which show output.
  var commands: [ShellCommand] {
    blocks.filter { $0.info != "text" }.flatMap { ShellCommand.read($0.lines) }
  }

  /// The texts between single backquotes outside the fenced blocks.
  var codeWords: [String] {
    prose.flatMap { line in
      line.components(separatedBy: "`").enumerated().compactMap {
        $0.offset % 2 == 1 ? $0.element : nil
      }
    }
  }

  /// The targets of links to files, with their anchors.
  var links: [String] {
    prose.flatMap { line in
      line.matches(of: /\]\(([^)\s]+)\)/).map { String($0.output.1) }
    }.filter { !$0.contains("://") && !$0.hasPrefix("mailto:") }
  }

  /// The anchors of the headings, as GitHub makes them.
  var anchors: [String] {
    prose.filter { $0.hasPrefix("#") }.map { line in
      let title = line.drop { $0 == "#" }.trimmingCharacters(in: .whitespaces).lowercased()
      return String(
        title.compactMap { character in
          if character == " " { return "-" }
          return character.isLetter || character.isNumber || "-_".contains(character)
            ? character : nil
        }
      )
    }
  }
}
