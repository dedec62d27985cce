import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#endif

/// A PostgreSQL server in a temporary folder, connected through a socket there.
///
/// It ends with the process that started it, in any case: a shell waits on a pipe that is closed
/// then.
package final class PostgreSQLServer: Sendable {
  /// The server that a test process shares; nil if PostgreSQL is not installed.
  package static let shared: PostgreSQLServer? = {
    do {
      return try PostgreSQLServer(isDurable: false)
    } catch {
      print("PostgreSQL is left out: \(error)")
      return nil
    }
  }()

  /// Why the server could not be started.
  package struct Failure: Error, CustomStringConvertible {
    package var description: String
  }

  private let folder: URL
  private let lifeline: FileHandle
  private let guardian: Process
  private let schemaCount = Atomic<Int>(0)

  /// Starts a server; `isDurable` flushes each commit to disk, as in production.
  package init(isDurable: Bool) throws {
    guard let programs = Self.programs else {
      throw Failure(description: "no /usr/lib/postgresql/*/bin/initdb (Debian: postgresql)")
    }
    folder = URL(fileURLWithPath: "/tmp/watershed-pg-\(UUID().uuidString.prefix(8))")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    // PostgreSQL refuses to run as root.
    let isRoot = geteuid() == 0
    if isRoot { try Self.run("/bin/chown", ["postgres", folder.path]) }
    let user = isRoot ? "setpriv --reuid=postgres --regid=postgres --clear-groups " : ""
    let settings = [
      "listen_addresses=", "unix_socket_directories=\(folder.path)", "max_connections=300",
      "shared_buffers=64MB", "logging_collector=off",
      // Statistics that are gathered at a time of its own choosing change the plans that tests check.
      "autovacuum=off",
      "fsync=\(isDurable ? "on" : "off")", "full_page_writes=\(isDurable ? "on" : "off")",
    ]
    // Quoted for the shell: paths and settings contain no quotes.
    let flags = settings.map { "-c '\($0)'" }.joined(separator: " ")
    let script = """
      cd '\(folder.path)'
      export LC_ALL=C
      \(user)'\(programs)/initdb' -D data -U postgres -A trust --no-sync --no-instructions \
        >initdb.log 2>&1 || { cat initdb.log; exit 1; }
      \(user)'\(programs)/postgres' -D data \(flags) >server.log 2>&1 &
      server=$!
      until '\(programs)/pg_isready' -q -h '\(folder.path)'; do
        kill -0 $server 2>/dev/null || { cat server.log; exit 1; }
        sleep 0.25
      done
      echo ready
      read -r line
      kill -INT $server
      wait $server
      cd /
      rm -rf '\(folder.path)'
      """
    let (input, output) = (Pipe(), Pipe())
    guardian = Process()
    guardian.executableURL = URL(fileURLWithPath: "/bin/sh")
    guardian.arguments = ["-c", script]
    guardian.standardInput = input
    guardian.standardOutput = output
    try guardian.run()
    lifeline = input.fileHandleForWriting
    var said = Data()
    while !said.ends(with: "ready\n") {
      let more = output.fileHandleForReading.availableData
      guard !more.isEmpty else {
        throw Failure(description: String(decoding: said, as: UTF8.self))
      }
      said += more
    }
  }

  private static var programs: String? {
    let root = "/usr/lib/postgresql"
    let versions = (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []
    return versions.compactMap(Int.init).sorted(by: >).map { "\(root)/\($0)/bin" }
      .first { FileManager.default.isExecutableFile(atPath: "\($0)/initdb") }
  }

  private static func run(_ path: String, _ arguments: [String]) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: path)
    process.arguments = arguments
    try process.run()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      throw Failure(description: "\(path) \(arguments.joined(separator: " ")) failed")
    }
  }

  /// The URL of the initial database.
  package var url: String { "postgresql:///postgres?host=\(folder.path)&user=postgres" }

  /// The parent process of the server's processes.
  package var processIdentifier: Int32 { guardian.processIdentifier }

  /// Creates a schema for one test's tables.
  package func freshSchema() -> String {
    "watershed_\(schemaCount.add(1, ordering: .relaxed).newValue)"
  }

  /// The URL of the database with everything in one schema.
  package func url(schema: String) -> String { "\(url)&options=-csearch_path%3D\(schema)" }

  /// Stops the server and removes its folder.
  package func stop() {
    try? lifeline.close()
    guardian.waitUntilExit()
  }
}

extension Data {
  fileprivate func ends(with text: String) -> Bool { suffix(text.utf8.count) == Data(text.utf8) }
}
