import CloudKitServer
import CloudKitWebServices
import Foundation

/// Many waiting event streams, and the delay of a commit's notification to one of them.
///
/// The streams are the service's own, without sockets.
struct ListenersBench {
  let room: BenchRoom
  var listeners = 10_000
  var commits = 201

  static let title = ["engine", "listeners", "kB a listener", "median (ms)", "longest of 20"]

  func run() async throws -> [String] {
    let bench = try await ServerBench(room, people: 2, indexes: 0)
    let before = residentBytes()
    let service = bench.service
    return try await withThrowingTaskGroup(of: Void.self) { group in
      // The streams of one user's devices receive no notifications of the other user's commits.
      for _ in 0..<100 {
        let path = try await bench.people[1].makeDevice()
        for _ in 0..<(listeners / 100) {
          var stream = try service.devices.openEventStream(path: path, lastEventID: nil)
          group.addTask { while await stream.next() != nil {} }
        }
      }
      let person = bench.people[0]
      try await person.subscribe()
      var stream = try service.devices.openEventStream(
        path: try await person.makeDevice(),
        lastEventID: nil
      )
      _ = await stream.next()
      let each = Double(residentBytes() - before) / Double(listeners) / 1000
      var waits: [Double] = []
      for number in 0..<commits {
        let body = try ServerBench.batch(person: person.number, number, 1)
        waits.append(
          try await ServerBench.seconds {
            async let reply = person.send(.modifyRecords, body)
            _ = await stream.next()
            _ = try await reply
          }
        )
      }
      waits.sort()
      service.devices.endListening()
      try await group.waitForAll()
      await service.shutdown()
      return [
        room.engine.rawValue, "\(listeners)", String(format: "%.1f", each),
        String(format: "%.2f", waits[commits / 2] * 1000),
        String(format: "%.2f", waits[commits * 19 / 20] * 1000),
      ]
    }
  }

  private func residentBytes() -> Int {
    let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
    let pages = text.split(separator: " ").compactMap { Int($0) }
    return (pages.count > 1 ? pages[1] : 0) * Int(sysconf(Int32(_SC_PAGESIZE)))
  }
}

extension ServerBench.Person {
  /// The path of a new device's event stream.
  fileprivate func makeDevice() async throws -> String {
    let reply = try WireCoding.decode(
      DeviceTokenResponse.self,
      from: try await send(.createToken, DeviceTokenRequest())
    )
    return "/events/\(reply.apnsToken)"
  }

  fileprivate func subscribe() async throws {
    let subscription = Subscription(subscriptionID: "all", subscriptionType: .database)
    _ = try await send(
      .modifySubscriptions,
      ModifySubscriptionsRequest(operations: [
        SubscriptionOperation(operationType: .create, subscription: subscription)
      ])
    )
  }
}
