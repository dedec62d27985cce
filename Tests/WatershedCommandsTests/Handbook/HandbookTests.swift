import ArgumentParser
import Foundation
import Testing

@testable import WatershedCommands

/// Compares the operator's handbook with the program.
@Suite("The operator's handbook")
struct HandbookTests {
  @Test("Every watershed command of every page is accepted by the program")
  func commands() throws {
    var count = 0
    for page in try HandbookPage.all() {
      for arguments in page.commands.compactMap(\.watershedArguments) {
        count += 1
        let line = "\(page.name): watershed \(arguments.joined(separator: " "))"
        do {
          _ = try WatershedCommand.parseAsRoot(arguments)
        } catch {
          // A request for help ends the parsing too.
          let isHelp = WatershedCommand.exitCode(for: error).isSuccess
          #expect(isHelp, "\(line): \(WatershedCommand.message(for: error))")
        }
      }
    }
    #expect(count > 0)
  }

  @Test("A command line is parsed as by a shell")
  func shell() {
    func arguments(_ line: String) -> [[String]] {
      ShellCommand.read(line.components(separatedBy: "\n")).compactMap(\.watershedArguments)
    }
    #expect(arguments("watershed doctor  # looks") == [["doctor"]])
    #expect(
      arguments("A=1 sudo -u me /usr/bin/watershed users add 'Ada L' > x") == [
        ["users", "add", "Ada L"]
      ]
    )
    #expect(
      arguments("openssl ec | watershed keys add - \\\n  --container-id x && ls") == [
        ["keys", "add", "-", "--container-id", "x"]
      ]
    )
    #expect(arguments("podman exec -it box watershed doctor 2>&1") == [["doctor"]])
    #expect(
      arguments("TOKEN=$(watershed tokens list --output json)") == [
        ["tokens", "list", "--output", "json"]
      ]
    )
    #expect(arguments("ExecStart=/usr/local/bin/watershed serve") == [["serve"]])
    #expect(arguments("install .build/release/watershed /usr/local/bin/").isEmpty)
  }

  @Test("Every variable that a page names is read by the program")
  func variables() throws {
    for page in try HandbookPage.all() {
      for match in page.text.matches(of: /WATERSHED_[A-Z0-9_]+/) {
        let name = String(match.output)
        let isKnown =
          ServerConfiguration.variables.contains(name)
          || ConfigurationSource.otherVariables.contains { name.hasPrefix($0) }
        #expect(isKnown, "\(page.name): \(name)")
      }
    }
  }

  @Test("Every configuration file of a page is read without an error")
  func configurations() throws {
    for page in try HandbookPage.all() {
      for block in page.blocks where block.info == "json watershed.json" {
        let file = FileManager.default.temporaryDirectory
          .appendingPathComponent("watershed-handbook-\(UUID().uuidString).json")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data(block.lines.joined(separator: "\n").utf8).write(to: file)
        let found = ConfigurationSource(file: file.path, environment: [:]).examine()
        #expect(found.mistakes.isEmpty, "\(page.name)")
        #expect(
          found.configuration?.problems.filter { !$0.contains("cannot be read") } == [],
          "\(page.name)"
        )
      }
    }
  }

  /// Names in code style that are no keys: members of requests, of replies and of log lines, names
  /// of operations and methods.
  private static let otherNames: Set<String> = [
    "affectedRecords", "apiToken", "baseURL", "bytesIn", "bytesOut", "clientId", "downloadURL",
    "emailAddress", "familyName",
    "forceReplace", "givenName", "hasAdministrator", "isAdministrator", "isComplete",
    "isDisabled", "isDryRun", "isKept", "keyID", "migratePersistentStore", "onlyErrors",
    "phoneNumber", "privateDatabasePartition",
    "publicDatabasePartition", "recordName", "redirectURL", "refreshToken", "requestID",
    "serverErrorCode", "serverRecordChanged", "userName", "userRecordName", "webAuthToken",
  ]

  /// The limits in their page.
  private func limits() throws -> [String] {
    let page = Watershed.packageRoot.appendingPathComponent("Documentation/Limits.md")
    return try String(contentsOf: page, encoding: .utf8).split(separator: "\n").compactMap { line in
      line.prefixMatch(of: /\| `(\w+)` \|/).map { String($0.output.1) }
    }
  }

  @Test("Every configuration key that a page names exists")
  func keys() throws {
    let sections = ServerConfiguration.sections.flatMap { section in
      section.keys.map { "\(section.name).\($0.name)" } + section.keys.map(\.name)
    }
    let known = Set(ServerConfiguration.keys.map(\.name) + sections)
      .union(Self.otherNames).union(try limits())
    for page in try HandbookPage.all() {
      for word in page.codeWords
      where word.wholeMatch(of: /[a-z0-9]+(\.[a-z0-9]+)?([A-Z]\w*)+|(s3|openID|smtp)\.\w+/) != nil {
        #expect(known.contains(word), "\(page.name): \(word)")
      }
    }
  }

  @Test("Every relative link has an existing file and anchor")
  func links() throws {
    for page in try HandbookPage.all() {
      for link in page.links {
        let parts = link.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
        let path = parts[0].isEmpty ? page.name : String(parts[0])
        let target = HandbookPage.folder.appendingPathComponent(path).standardizedFileURL
        #expect(FileManager.default.fileExists(atPath: target.path), "\(page.name): \(link)")
        guard parts.count == 2, target.pathExtension == "md" else { continue }
        let anchors = try HandbookPage(target).anchors
        #expect(anchors.contains(String(parts[1])), "\(page.name): \(link)")
      }
    }
  }

  @Test("The index has a link to every page")
  func index() throws {
    let pages = try HandbookPage.all()
    let index = try #require(pages.first { $0.name == "README.md" })
    for page in pages where page.name != index.name {
      #expect(index.links.contains(page.name), "\(page.name)")
    }
  }
}
