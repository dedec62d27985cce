import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

/// A token that opens is not trusted further than its numbers make sense: keys that leaked seal any.
@Suite("Numbers in change tokens", .everyEngine)
struct ChangeTokenNumberTests {
  enum Change: String, CaseIterable {
    case counter, place, ceiling, ceilingPlace, top, began, seen, participation, sharedZones
    case newerTop, newerBegan, newerSeen

    func apply(to token: inout ChangeToken) {
      let least = ChangeNumber(.min)
      let last = ChangeNumber(.max)
      switch self {
      case .counter: token.counter = least
      case .place: token.place = least
      case .ceiling: token.ceiling = ZoneFeed.Position(change: least)
      case .ceilingPlace: token.ceiling = ZoneFeed.Position(change: token.counter, place: least)
      case .top: token.top = least
      case .began: token.began = least
      case .seen: token.seen = least
      case .participation: token.participation = least
      case .sharedZones: token.sharedZones = [1, 1, .min]
      case .newerTop: token.top = last
      case .newerBegan: token.began = last
      case .newerSeen: token.seen = last
      }
    }
  }

  @Test("A sealed token with impossible numbers has expired", arguments: Change.allCases)
  func impossible(change: Change) async throws {
    let server = try await TestServer()
    let person = try await server.person().extended
    try await person.makeZone()
    try await person.save(.create, "a")
    let text = try #require(try await person.changes().syncToken)
    let opened = server.service.signer.open(text, as: ChangeToken.self, for: .changeToken)
    var token = try #require(opened)
    change.apply(to: &token)
    let sealed = try server.service.signer.seal(token, for: .changeToken)
    for reverse in [false, true] {
      let error = await #expect(throws: ErrorDictionary.self) {
        try await person.changes(since: sealed, reverse: reverse)
      }
      #expect(error?.extension?.code == .changeTokenExpired)
    }
    // The unchanged one is good.
    #expect(try await person.changes(since: text).records.isEmpty)
  }
}
