import Foundation
import LocalWorkload

/// The cost of large stores: opening, iterating, and memory for each object.
struct LargeReport {
  let rows: Int

  /// The rows of the small store that the large one is compared with.
  private static let fewRows = 10_000
  private static let batchSize = 500
  private static let peakLimit = 100

  func run() throws {
    let few = try measure(Self.fewRows)
    let many = try measure(rows)
    print("Opening and a first fetch of 20, each in a fresh process:\n")
    print(row(["rows", "opening ms", "fetch ms"]))
    for (count, result) in [(Self.fewRows, few), (rows, many)] {
      print(row(["\(count)", milliseconds(result.opening), milliseconds(result.firstFetch)]))
    }
    print(
      "\nWalking \(rows) objects with batches of \(Self.batchSize): \(seconds(many.walk)) s, peak "
        + "\(many.peakMegabytes) MB (at most \(Self.peakLimit): "
        + "\(many.peakMegabytes <= Self.peakLimit ? "met" : "not met"))."
    )
    let (fault, loaded) = try inTemporaryFolder { folder in
      let store = LargeStore(folder: folder)
      try store.fill(rows: Self.fewRows)
      return try store.bytesPerObject(count: Self.fewRows)
    }
    print(
      "Of \(Self.fewRows) live objects each takes \(fault) bytes as a fault and \(loaded) loaded, "
        + "its row included.\n"
    )
  }

  private func measure(_ rows: Int) throws -> LargeStore.Result {
    try inTemporaryFolder { folder in
      try LargeStore(folder: folder).fill(rows: rows)
      return try inProcess(["walk", folder.path, "\(Self.batchSize)"])
    }
  }

  private func milliseconds(_ value: Double) -> String { String(format: "%.1f", value * 1000) }
}
