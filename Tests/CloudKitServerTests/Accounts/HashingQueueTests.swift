import CloudKitWebServices
import Effects
import Testing

@testable import CloudKitServer

/// The queue of the one lane that hashes passwords.
@Suite("The queue of password hashing")
struct HashingQueueTests {
  private let queue = HashingQueue(Effects.live.lane("hashing"))
  private let limits = ServiceLimits()

  /// Takes places for senders, nested, and then tries another one; returns whether it got a place.
  private func hasPlace(
    _ sender: SenderAddress?,
    isKnown: Bool = false,
    behind others: ArraySlice<(sender: SenderAddress?, isKnown: Bool)>
  ) async throws -> Bool {
    guard let first = others.first else {
      do {
        return try await queue.withPlace(of: sender, isKnown: isKnown, limits) { _ in true }
      } catch let error as ErrorDictionary where error.serverErrorCode == .throttled {
        return false
      }
    }
    return try await queue.withPlace(of: first.sender, isKnown: first.isKnown, limits) { _ in
      try await hasPlace(sender, isKnown: isKnown, behind: others.dropFirst())
    }
  }

  /// Senders of `count` IPv4 networks.
  private func strangers(_ count: Int) -> ArraySlice<(sender: SenderAddress?, isKnown: Bool)> {
    (0..<count).map { (SenderAddress("198.51.100.\($0)"), false) }[...]
  }

  @Test("Senders of many networks leave places for known networks and for this process")
  func reserve() async throws {
    let sender = SenderAddress("192.0.2.1")
    #expect(try await hasPlace(sender, behind: strangers(29)))
    #expect(try await !hasPlace(sender, behind: strangers(30)))
    #expect(try await hasPlace(sender, isKnown: true, behind: strangers(30)))
    #expect(try await hasPlace(nil, behind: strangers(30)))
  }

  @Test("One known network takes a few of the reserved places, not all")
  func knownNetwork() async throws {
    let sender = SenderAddress("192.0.2.1")
    let other = SenderAddress("203.0.113.1")
    let three = strangers(30) + Array(repeating: (sender: sender, isKnown: true), count: 3)
    #expect(try await !hasPlace(sender, isKnown: true, behind: three))
    #expect(try await hasPlace(other, isKnown: true, behind: three))
    // All places were released.
    #expect(try await hasPlace(sender, behind: strangers(29)))
  }

  @Test("The networks of one site share the site's places")
  func site() async throws {
    let networks: [(sender: SenderAddress?, isKnown: Bool)] = (0..<12).map {
      (SenderAddress("2001:db8:0:\($0)::1"), false)
    }
    #expect(try await hasPlace(SenderAddress("2001:db8:0:f::1"), behind: networks[..<11]))
    #expect(try await !hasPlace(SenderAddress("2001:db8:0:f::1"), behind: networks[...]))
    #expect(try await hasPlace(SenderAddress("2001:db8:1::1"), behind: networks[...]))
  }
}
