import CloudKitWebServices
import Effects
import Foundation

@testable import CloudKitServer

/// Runs steps that a seed chooses.
struct RequestProgram {
  private static let stepCount = 120

  private let random: SeededRandomness
  private let world: RequestWorld
  private let engine: TestEngine
  private var trace: [String] = []

  /// The result of a program.
  struct Report {
    /// The defect, with the steps that led to it; nil if there is none.
    var failure: String?
    var counts: [String: Int] = [:]
  }

  /// Runs a program.
  static func report(of seed: UInt64, on engine: TestEngine) async throws -> Report {
    let found = ReportBox()
    try await TestEngine.run(with: engine) {
      try await withTemporaryFolder { folder in
        let world = try await RequestWorld(
          folder: folder,
          serverCount: engine == .postgreSQL ? 2 : 1,
          seed: seed
        )
        var program = RequestProgram(
          random: SeededRandomness(seed: seed),
          world: world,
          engine: engine
        )
        do {
          try await program.run()
          let broken = try world.servers[0].service.storage.brokenInvariants(
            in: folder.appendingPathComponent("audit")
          )
          if !broken.isEmpty { found.report.failure = broken.joined(separator: "\n") }
        } catch {
          found.report.failure =
            "\(error)\n" + program.trace.suffix(30).joined(separator: "\n")
        }
        found.report.counts = world.counts
        await world.shutdown()
        world.removeCopy()
      }
    }
    return found.report
  }

  private final class ReportBox: @unchecked Sendable {
    // Unchecked: written by the task that runs the program, and read after it.
    var report = Report()
  }

  private mutating func run() async throws {
    for zone in RequestWorld.zoneNames { try await world.makeZone(zone, by: 0) }
    for step in 0..<Self.stepCount { try await take(step) }
    for device in world.devices.indices {
      note("device \(device) reads everything")
      try await world.catchUp(device, pages: .max, limit: 3)
    }
  }

  private mutating func note(_ text: String) { trace.append(text) }

  // MARK: Choices

  private func below(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }
  private func pick<Element>(_ elements: [Element]) -> Element { elements[below(elements.count)] }

  private mutating func take(_ step: Int) async throws {
    let zone = pick(RequestWorld.zoneNames)
    let owner = pick(RequestWorld.owners)
    if engine == .postgreSQL {
      for device in world.devices.indices { world.move(device, to: below(world.servers.count)) }
    }
    switch below(100) {
    case 0..<2:
      note("\(step): device \(owner) makes the zone \(zone)")
      try await world.makeZone(zone, by: owner)
    case 2..<4:
      note("\(step): device \(owner) deletes the zone \(zone)")
      try await world.deleteZone(zone, by: owner)
    case 4..<14: try await share(in: zone, step)
    case 14..<17:
      note("\(step): the last batch is sent again")
      try await world.repeatLast()
    case 17..<22:
      let number = Int64(below(4))
      note("\(step): a query in \(zone) for \(number)")
      try await world.query(number, in: zone)
    case 22..<40:
      let device = below(world.devices.count)
      let (pages, limit) = (1 + below(6), 1 + below(4))
      note("\(step): device \(device) reads \(pages) pages of \(limit)")
      try await world.catchUp(device, pages: pages, limit: limit)
    case 40..<42 where engine == .sqlite:
      let (keeps, back) = (below(2) == 0, below(3) == 0)
      note("\(step): the server restarts; a copy is kept: \(keeps), put back: \(back)")
      try await world.restart(keepingCopy: keeps, puttingBack: back)
    case 42..<50: try await writeAsGuest(in: zone, step)
    case 50..<58: try await race(in: zone, step)
    default: try await write(in: zone, by: owner, step)
    }
  }

  private mutating func share(in zone: String, _ step: Int) async throws {
    guard let model = world.zones[zone] else { return }
    let root = pick(["s0", "s1"])
    let name = RequestWorld.shareName(root)
    let share = model.shares[name]
    if share == nil || below(8) == 0 {
      note("\(step): \(root) in \(zone) is shared")
      try await world.share(root, in: zone)
    } else if share?.isJoined == false, share?.isInvited == true, below(4) > 0 {
      note("\(step): the guest accepts \(name) in \(zone)")
      try await world.join(name, in: zone)
    } else if below(3) == 0 {
      let device = pick([0, RequestWorld.guest])
      note("\(step): device \(device) ends \(name) in \(zone)")
      try await world.endShare(name, in: zone, by: device)
    }
  }

  private static let names = ["s0", "s1", "r0", "r1", "r2", "r3", "r4", "r5"]

  private func batch(in zone: String) -> [ModelOperation] {
    var names = Self.names
    return (0..<pick([1, 1, 1, 2, 3, 5])).map { _ in
      operation(on: names.remove(at: below(names.count)), in: zone)
    }
  }

  private mutating func write(in zone: String, by device: Int, _ step: Int) async throws {
    let operations = batch(in: zone)
    let isAtomic = below(2) == 0
    let failure: FlakyStorage.Failure? = [0: .before, 1: .after][below(10)]
    note(
      "\(step): device \(device) sends \(isAtomic ? "whole" : "in parts") to \(zone)"
        + (failure.map { ", failing \($0) the commit" } ?? "") + ": "
        + operations.map(text).joined(separator: ", ")
    )
    try await world.modify(
      operations,
      in: zone,
      by: device,
      isAtomic: isAtomic,
      failing: failure
    )
  }

  private mutating func race(in zone: String, _ step: Int) async throws {
    let batches = [batch(in: zone), batch(in: zone)]
    let isAtomic = below(2) == 0
    let texts = batches.map { $0.map(text).joined(separator: ", ") }
    note(
      "\(step): both devices send \(isAtomic ? "whole" : "in parts") to \(zone): "
        + texts.joined(separator: " | ")
    )
    try await world.race(batches, in: zone, isAtomic: isAtomic)
  }

  private func text(_ operation: ModelOperation) -> String {
    var text = "\(operation.type) \(operation.name)"
    if let tag = operation.tag { text += " tag \(tag)" }
    if !operation.isDelete { text += " n \(operation.number)" }
    if case .set(let link) = operation.link { text += " to \(link.target) \(link.action)" }
    if operation.link == .clear { text += " to nothing" }
    if let parent = operation.parent { text += " below \(parent)" }
    return text
  }

  private static let saves: [RecordOperationType] = [
    .update, .update, .forceUpdate, .replace, .forceReplace,
  ]

  private func type(for record: ModelRecord?, isRoot: Bool) -> RecordOperationType {
    // Missing records are mostly created, existing ones mostly saved; roots of shares should be
    // kept.
    guard record != nil else { return below(4) > 0 ? .create : pick(RecordOperationType.allCases) }
    if below(isRoot ? 8 : 3) > 0 { return pick(Self.saves) }
    return pick([.create, .delete, .forceDelete])
  }

  /// A name that mostly exists.
  private func target(among names: [String], in zone: String) -> String {
    let there = names.filter { world.zones[zone]?.records[$0] != nil }
    return there.isEmpty || below(5) == 0 ? pick(names) : pick(there)
  }

  private func operation(on name: String, in zone: String) -> ModelOperation {
    let record = world.zones[zone]?.records[name]
    let isRoot = name.hasPrefix("s")
    var operation = ModelOperation(type: type(for: record, isRoot: isRoot), name: name)
    if [.update, .replace, .delete].contains(operation.type) {
      operation.tag = below(6) == 0 ? pick(world.staleTags) : record?.tag ?? "none"
    }
    guard !operation.isDelete else { return operation }
    operation.number = Int64(below(4))
    switch below(6) {
    case 0: operation.link = .clear
    case 1...3 where !isRoot:
      let action = pick([ReferenceAction.deleteSelf, .deleteSelf, .validate, .none])
      operation.link = .set(.init(target: target(among: Self.names, in: zone), action: action))
    default: break
    }
    // Only names before it, so that no record is its own ancestor.
    if !isRoot, below(3) == 0, let index = Self.names.firstIndex(of: name) {
      operation.parent = target(among: Array(Self.names[..<index]), in: zone)
    }
    return operation
  }

  private mutating func writeAsGuest(in zone: String, _ step: Int) async throws {
    guard let model = world.zones[zone], model.shares.values.contains(where: \.isJoined) else {
      return
    }
    let seen = model.visibleToGuest.keys.sorted()
    guard !seen.isEmpty else { return }
    var operation: ModelOperation
    if below(2) == 0 {
      operation = ModelOperation(type: .forceUpdate, name: pick(seen))
    } else {
      operation = ModelOperation(type: .create, name: "g\(below(3))")
      operation.parent = pick(seen)
    }
    operation.number = Int64(below(4))
    note("\(step): the guest sends to \(zone): \(text(operation))")
    try await world.modify(
      [operation],
      in: zone,
      by: RequestWorld.guest,
      isAtomic: true,
      failing: nil
    )
  }
}
