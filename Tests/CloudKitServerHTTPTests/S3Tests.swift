import CloudKitServer
import CloudKitServerHTTP
import Foundation
import Synchronization
import Testing

/// A server of the S3 protocol, moto from PyPI, on its own port.
private final class MotoServer: @unchecked Sendable {
  // Unchecked: one test starts and stops it.
  let endpoint: String
  private let process: Process

  /// The Python with moto; `scripts/setup` installs it if Python has a virtual environment.
  static let python: String? = {
    let places = [
      ProcessInfo.processInfo.environment["WATERSHED_PYTHON"], ".venv/bin/python3",
      "/usr/bin/python3", "/usr/local/bin/python3",
    ].compactMap(\.self)
    let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
    let found = path.split(separator: ":").map { "\($0)/python3" }
    return (places + found).first { candidate in
      guard FileManager.default.isExecutableFile(atPath: candidate) else { return false }
      let check = Process()
      check.executableURL = URL(fileURLWithPath: candidate)
      check.arguments = ["-c", "import moto.server, flask"]
      check.standardOutput = FileHandle.nullDevice
      check.standardError = FileHandle.nullDevice
      guard (try? check.run()) != nil else { return false }
      check.waitUntilExit()
      return check.terminationStatus == 0
    }
  }()

  init(python: String) throws {
    process = Process()
    process.executableURL = URL(fileURLWithPath: python)
    // The system chooses the port; the server prints it.
    process.arguments = [
      "-c",
      """
      import sys
      from moto.server import DomainDispatcherApplication, create_backend_app
      from werkzeug.serving import make_server
      server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=True)
      print(server.server_port, flush=True)
      server.serve_forever()
      """,
    ]
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    process.standardInput = FileHandle.nullDevice
    try process.run()
    var line = Data()
    while !line.contains(UInt8(ascii: "\n")) {
      let more = output.fileHandleForReading.availableData
      if more.isEmpty { break }
      line.append(more)
    }
    let port = String(decoding: line, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    endpoint = "http://127.0.0.1:\(port)"
  }

  func stop() {
    // Not SIGTERM: a process started by a pool's thread inherits that it is blocked.
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }
}

@Suite("Assets in a bucket", .serialized)
struct S3Tests {
  private func withStore(_ body: (S3AssetStore) async throws -> Void) async throws {
    let python = try #require(MotoServer.python)
    let server = try MotoServer(python: python)
    defer { server.stop() }
    let store = try S3AssetStore(
      S3AssetStore.Settings(
        endpoint: server.endpoint,
        bucket: "files",
        accessKey: "key",
        secretKey: "secret",
        prefix: "some where/"
      )
    )
    try await store.createBucket()
    try await body(store)
  }

  private func bytes(
    _ store: S3AssetStore,
    _ place: AssetPlace,
    _ range: Range<Int64>
  ) async throws
    -> Data
  {
    let found = Mutex(Data())
    try await store.read(place, range) { piece in found.withLock { $0.append(piece) } }
    return found.withLock { $0 }
  }

  @Test(
    "A file has no more parts than the protocol permits",
    arguments: [0, 1, 8 << 20, 70 << 30, 79 << 30, 1 << 40, 4 << 40] as [Int64]
  )
  func parts(size: Int64) {
    let part = Int64(S3AssetStore.partSize(ofFile: size))
    #expect(part >= 8 << 20)
    #expect((size + part - 1) / part <= 10_000)
    // And no part is larger than an object may be without parts.
    #expect(part < 5 << 30)
  }

  @Test(
    "A file is uploaded, whole or in parts, downloaded by ranges, listed and removed",
    .enabled(if: MotoServer.python != nil, "needs moto from PyPI: scripts/setup installs it"),
    arguments: [0, 5, 8 * 1_048_576, 8 * 1_048_576 + 1, 20 * 1_048_576]
  )
  func roundTrip(size: Int) async throws {
    try await withStore { store in
      let place = AssetPlace(PartitionID(rawValue: 7), "00ff")
      #expect(try await store.size(of: place) == nil)
      let content = Data((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 7) })
      let upload = try await store.begin(place)
      var rest = content
      while !rest.isEmpty {
        try await upload.write(Data(rest.prefix(3_000_000)))
        rest = rest.dropFirst(3_000_000)
      }
      try await upload.finish()
      #expect(try await store.size(of: place) == Int64(size))
      if size > 0 {
        #expect(try await bytes(store, place, 0..<Int64(size)) == content)
        #expect(try await bytes(store, place, 1..<Int64(min(size, 4))) == content[1..<min(size, 4)])
      }
      #expect(try await store.partitions() == [PartitionID(rawValue: 7)])
      let files = try await store.files(in: PartitionID(rawValue: 7))
      #expect(files.map(\.name) == ["00ff"])
      #expect(files.map(\.size) == [Int64(size)])
      try await store.remove(place)
      try await store.remove(place)
      #expect(try await store.size(of: place) == nil)
    }
  }

  @Test(
    "A cancelled upload leaves nothing, and a wrong key is reported",
    .enabled(if: MotoServer.python != nil, "needs moto from PyPI: scripts/setup installs it")
  )
  func cancelled() async throws {
    try await withStore { store in
      let place = AssetPlace(PartitionID(rawValue: 1), "ab")
      let upload = try await store.begin(place)
      try await upload.write(Data(count: 9 * 1_048_576))
      await upload.cancel()
      #expect(try await store.size(of: place) == nil)
      try await store.removeRemains(before: .distantFuture)
      await #expect(throws: S3AssetStore.Failure.self) {
        try await store.read(place, 0..<1) { _ in }
      }
    }
  }
}
