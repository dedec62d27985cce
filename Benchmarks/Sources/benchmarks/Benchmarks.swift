import Foundation
import LocalWorkload

/// `benchmarks [local] [growth] [large] [sync] [server [PART…]] [client] [--posts N] [--rounds N]
/// [--rows N] [--processor-time]`: runs the named benchmarks, or all of them.
///
/// With `--processor-time` the local workload measures its processor time, user and system, instead
/// of the elapsed time, and uses the least of all rounds: its ratios are then comparable on a busy
/// machine. A file system in memory makes them more precise (`TMPDIR=/dev/shm`).
@main
enum Benchmarks {
  static func main() async throws {
    var arguments = Array(CommandLine.arguments.dropFirst())
    let posts = number(after: "--posts", in: &arguments)
    let rounds = number(after: "--rounds", in: &arguments) ?? 3
    let records = number(after: "--records", in: &arguments)
    let rows = number(after: "--rows", in: &arguments)
    let measuresProcessor = arguments.contains(LocalReport.processorFlag)
    arguments.removeAll { $0 == LocalReport.processorFlag }
    if measuresProcessor { WorkloadResult.measureProcessorTime() }
    if arguments.first == "engine", let engine = LocalEngine(rawValue: arguments.last ?? "") {
      let result = try engine.run(posts: Int64(posts ?? 100_000))
      print(String(decoding: try JSONEncoder().encode(result), as: UTF8.self))
      return
    }
    if arguments.first == "walk", arguments.count == 3 {
      let store = LargeStore(folder: URL(fileURLWithPath: arguments[1]))
      var result = try store.measure(walksWithBatchesOf: Int(arguments[2]))
      result.peakMegabytes = peakMegabytes()
      print(String(decoding: try JSONEncoder().encode(result), as: UTF8.self))
      return
    }
    if arguments.first == "server-clients" {
      print(try await ProcessesBench.serveClients(Array(arguments.dropFirst())))
      return
    }
    if arguments.first == "client-changes" {
      let fetched = try await ClientReport.fetchChanges(records ?? 100_000)
      print(String(decoding: try JSONEncoder().encode(fetched), as: UTF8.self))
      return
    }
    let isEverything = arguments.isEmpty
    if isEverything || arguments.contains("local") {
      try LocalReport(
        posts: Int64(posts ?? 100_000),
        rounds: rounds,
        measuresProcessor: measuresProcessor
      ).run()
    }
    if isEverything || arguments.contains("growth") {
      try GrowthReport(rounds: rounds).run()
    }
    if isEverything || arguments.contains("large") {
      try LargeReport(rows: rows ?? 1_000_000).run()
    }
    if isEverything || arguments.contains("sync") {
      try await SyncReport(posts: posts ?? 10_000).run()
    }
    if isEverything || arguments.contains("server") {
      let parts = arguments.compactMap { ServerReport.Part(rawValue: $0) }
      try await ServerReport(
        parts: parts.isEmpty ? ServerReport.Part.allCases : parts,
        rows: rows ?? 100_000
      ).run()
    }
    if isEverything || arguments.contains("client") {
      try await ClientReport().run()
    }
  }

  private static func number(after flag: String, in arguments: inout [String]) -> Int? {
    guard let index = arguments.firstIndex(of: flag), index + 1 < arguments.count else {
      return nil
    }
    defer { arguments.removeSubrange(index...index + 1) }
    return Int(arguments[index + 1])
  }
}
