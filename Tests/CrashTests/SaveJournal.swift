/// A write-ahead journal of the test devices: each intended save, and each save that returned.
///
/// A device writes an entry before a save and another after it returned: a process that is killed in
/// between may have saved or not.
struct SaveJournal {
  /// What one device saved to one post.
  private struct Edits {
    /// The content of the last save that returned.
    var saved: String?
    /// The contents of the saves that were announced after it.
    var announced: [String] = []
  }

  private var inserted: Set<String> = []
  /// Titles of posts whose deletion was announced.
  private var leaving: Set<String> = []
  /// Titles of posts whose deletion returned.
  private var deleted: Set<String> = []
  /// The edits by title and device.
  private var edits: [String: [String: Edits]] = [:]

  var isEmpty: Bool { inserted.isEmpty }

  /// Reads what a device said until it was killed.
  mutating func read(_ lines: [String], of device: String) {
    for line in lines {
      let words = line.split(separator: " ").map(String.init)
      let title = words[1]
      switch words[0] {
      case "inserted": inserted.insert(title)
      case "edit": edits[title, default: [:]][device, default: Edits()].announced.append(words[2])
      case "edited": edits[title, default: [:]][device] = Edits(saved: words[2])
      case "delete": leaving.insert(title)
      case "deleted": deleted.insert(title)
      default: break
      }
    }
  }

  /// What is wrong with the posts that a device has in the end, each as its properties.
  func findings(in posts: [[String]]) -> [String] {
    func value(_ name: String, _ post: [String]) -> String? {
      post.first { $0.hasPrefix("\(name)=") }.map { String($0.dropFirst(name.count + 1)) }
    }
    var contents: [String: String?] = [:]
    var findings: [String] = []
    for post in posts {
      guard let title = value("title", post) else { continue }
      if contents[title] != nil { findings.append("\(title) is there twice") }
      contents[title] = .some(value("content", post))
    }
    for title in inserted.subtracting(leaving).sorted() where contents[title] == nil {
      findings.append("\(title) is lost")
    }
    // A change that another device makes to a post that is deleted here may bring it back.
    for title in deleted.sorted() where contents[title] != nil && edits[title] == nil {
      findings.append("\(title) was deleted and is there")
    }
    for (title, byDevice) in edits.sorted(by: { $0.key < $1.key }) {
      guard let content = contents[title], byDevice.values.contains(where: { $0.saved != nil })
      else { continue }
      // One of several devices wins, with the last content that it saved.
      let valid = byDevice.values.flatMap { [$0.saved].compactMap { $0 } + $0.announced }
      if !valid.contains(content ?? "") {
        findings.append("\(title) has the content \(content ?? "nil"), not one of \(valid)")
      }
    }
    return findings
  }
}
