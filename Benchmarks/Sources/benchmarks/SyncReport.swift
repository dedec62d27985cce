import CloudKitMirroring
import CloudKitServer
import CloudKitServerHTTP
import CloudKitWebServices
import Effects
import Foundation
import Logging
import OpenCloudKit
import OpenCoreData
import WatershedCommands

/// The cost of a sync and its parts, with two devices and a server, with sockets and files.
struct SyncReport {
  let posts: Int

  private static let latencyRounds = 31
  private static let idleSeconds = 5

  func run() async throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("watershed-benchmark-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let rig = try await SyncRig(folder: folder)
    try await latency(rig)
    try await idle()
    try await bulk(rig)
    await rig.stop()
  }

  // MARK: One save

  private func latency(_ rig: SyncRig) async throws {
    var spans: [Double] = []
    for round in 0..<Self.latencyRounds {
      let title = "latency \(round)"
      let start = rig.uptime
      try await rig.phone.perform { context in
        let post = NSEntityDescription.insertNewObject(forEntityName: "Post", into: context)
        post.setValue(title, forKey: "title")
        try context.save()
      }
      try await rig.untilLaptop { try await rig.laptop.count("Post") == round + 1 }
      spans.append((rig.uptime - start) * 1000)
    }
    spans.sort()
    print(
      String(
        format: "One save, seen on the other device: median %.1f ms, worst %.1f ms (%d saves).",
        spans[spans.count / 2],
        spans[spans.count - 1],
        spans.count
      )
    )
  }

  private func idle() async throws {
    let before = processorSeconds()
    try await Task.sleep(for: .seconds(Self.idleSeconds))
    let used = processorSeconds() - before
    print(
      String(
        format: "Idle, two devices and the server in one process: %.2f %% of one processor.",
        used / Double(Self.idleSeconds) * 100
      )
    )
  }

  // MARK: Many objects

  private func bulk(_ rig: SyncRig) async throws {
    let memory = peakMegabytes()
    rig.meter.reset()
    let start = rig.uptime
    let posts = posts
    try await rig.phone.perform { context in
      let tags = (0..<200).map { number in
        let tag = NSEntityDescription.insertNewObject(forEntityName: "Tag", into: context)
        tag.setValue("tag \(number)", forKey: "name")
        return tag
      }
      for number in 0..<posts {
        let post = NSEntityDescription.insertNewObject(forEntityName: "Post", into: context)
        post.setValue("Post \(number)", forKey: "title")
        post.setValue(String(repeating: "content ", count: 26), forKey: "content")
        post.setValue(Set([tags[number % 200], tags[(number * 7 + 1) % 200]]), forKey: "tags")
        if number % 1000 == 999 { try context.save() }
      }
      try context.save()
    }
    let saved = rig.uptime
    let expected = posts + Self.latencyRounds
    try await rig.untilLaptop {
      guard try await rig.laptop.count("Post") == expected else { return false }
      return try await rig.phone.isSettled()
    }
    let total = rig.uptime - start
    let objects = Double(posts + 200)
    let shares = try rig.meter.shares(total: total)
    print(
      String(
        format: """

          %d posts with two tags each (%d records): saved in %.1f s, on the other device after \
          %.1f s: %.0f objects a second.
          """,
        posts,
        posts * 3 + 200,
        saved - start,
        total,
        objects / total
      )
    )
    for share in shares { print(row([share.name, share.text])) }
    print("Peak memory before \(memory) MB, after \(peakMegabytes()) MB, all in one process.")
  }
}
