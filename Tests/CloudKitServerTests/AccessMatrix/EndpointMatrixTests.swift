import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

/// Every endpoint × every caller × every database, with the capability header and without, on every
/// engine.
///
/// The rows are in `EndpointMatrix`; an endpoint, caller or cell that is missing there does not
/// compile.
@Suite("The access matrix of endpoints, callers and databases", .everyEngine)
struct EndpointMatrixTests {
  @Test(
    "Every endpoint replies to every caller as in the matrix",
    arguments: Endpoint.allCases,
    [false, true]
  )
  func matrix(endpoint: Endpoint, isExtended: Bool) async throws {
    let world = try await MatrixWorld()
    for scope in DatabaseScope.allCases {
      let row = endpoint.matrixRow(in: scope)
      var wrong: [String] = []
      // The owner is last: only the owner's requests change the requested data.
      for caller in MatrixCaller.allCases {
        let reply = try await world.send(
          endpoint.matrixBody(in: scope),
          endpoint,
          in: scope,
          by: caller,
          isExtended: isExtended
        )
        let found = Self.outcome(of: reply)
        if found != row.outcome(caller.column).rawValue {
          wrong.append("\(caller.rawValue): \(found)")
        }
        wrong += Self.leaks(in: reply, to: caller)
      }
      #expect(wrong == [], "\(endpoint.rawValue) in \(scope.rawValue)")
    }
  }

  @Test(
    "No byte of a user's hidden data is sent to another caller, for any request",
    arguments: Endpoint.allCases
  )
  func markers(endpoint: Endpoint) async throws {
    let world = try await MatrixWorld()
    var leaks: [String] = []
    for body in endpoint.probes {
      for scope in DatabaseScope.allCases {
        for caller in MatrixCaller.allCases where caller.column != .owner {
          for isExtended in [false, true] {
            let reply = try await world.send(
              body,
              endpoint,
              in: scope,
              by: caller,
              isExtended: isExtended
            )
            leaks += Self.leaks(in: reply, to: caller).map { "\($0) in \(scope.rawValue): \(body)" }
          }
        }
      }
    }
    #expect(leaks == [])
    // The markers can be found.
    let own = try await world.send(
      #"{"records":[{"recordName":"c"}],"zoneID":$zone}"#,
      .lookupRecords,
      in: .private,
      by: .owner,
      isExtended: true
    )
    #expect(String(decoding: own.body, as: UTF8.self).contains(MatrixMarker.hidden))
  }

  @Test(
    "Hidden and missing records get the same reply",
    arguments: Endpoint.allCases.filter { $0.matrixBody(in: .private).contains("$zone") }
  )
  func indistinguishable(endpoint: Endpoint) async throws {
    let world = try await MatrixWorld()
    var absent = world.zone
    absent.zoneName = "nowhere"
    let outside: [MatrixCaller] = [
      .tokenAlone, .visitorElsewhere, .serverKey, .stranger, .invited, .removed,
      .ownerInOtherContainer,
    ]
    for scope in DatabaseScope.allCases where scope != .public {
      for caller in outside {
        for isExtended in [false, true] {
          let body = endpoint.matrixBody(in: scope)
          let replies = try await [world.zone, absent].asyncMap { zone in
            try await world.send(
              body,
              endpoint,
              in: scope,
              by: caller,
              isExtended: isExtended,
              about: zone
            )
          }
          let texts = replies.map { Self.comparable($0).replacing("nowhere", with: "notes") }
          #expect(texts[0] == texts[1], "\(caller.rawValue) in \(scope.rawValue)")
        }
      }
    }
  }

  @Test("Hidden and missing records get the same reply for a participant of a share")
  func hiddenRecords() async throws {
    let world = try await MatrixWorld()
    let bodies: [(Endpoint, String)] =
      [
        (.lookupRecords, #"{"records":[{"recordName":"$name"}],"zoneID":$zone}"#),
        (
          .rereferenceAssets,
          #"{"zoneID":$zone,"assets":[{"recordName":"$name","fieldName":"file"}]}"#
        ),
      ]
      + RecordOperationType.allCases.filter { $0 != .create }.map { type in
        (
          .modifyRecords,
          #"{"operations":[{"operationType":"\#(type.rawValue)","record":{"recordName":"$name","#
            + #""recordType":"Note","recordChangeTag":"1"}}],"zoneID":$zone}"#
        )
      }
    for (endpoint, body) in bodies {
      for caller in [MatrixCaller.reader, .writer] {
        // "c" is in the zone, "q" is not.
        let texts = try await ["c", "q"].asyncMap { name in
          let reply = try await world.send(
            body.replacing("$name", with: name),
            endpoint,
            in: .shared,
            by: caller,
            isExtended: true
          )
          return Self.comparable(reply).replacing(#""q""#, with: #""c""#)
        }
        #expect(texts[0] == texts[1], "\(caller.rawValue): \(body)")
      }
    }
  }

  /// Status, names of headers and body, without the parts that differ in each reply.
  private static func comparable(_ reply: WebServiceResponse) -> String {
    let body = String(decoding: reply.body, as: UTF8.self)
      .replacing(/"uuid":"[^"]*"/, with: "")
      .replacing(/"redirectURL":"[^"]*"/, with: "")
    return "\(reply.status) \(reply.headers.keys.sorted()) \(body)"
  }

  @Test("A repeated signature gets the first reply, at every endpoint")
  func replays() async throws {
    let world = try await MatrixWorld()
    let key = try await SigningClient(world.server)
    for endpoint in Endpoint.allCases {
      for scope in DatabaseScope.allCases {
        let body = Data(endpoint.matrixBody(in: scope).utf8)
        let request = try key.signed(key.path(endpoint, scope), body)
        let first = await key.send(request)
        let again = await key.send(request)
        #expect(again.status == first.status, "\(endpoint.rawValue) in \(scope.rawValue)")
        if first.status == 200 { #expect(again.body == first.body, "\(endpoint.rawValue)") }
      }
    }
  }

  /// The letter of the outcome, or another error code.
  private static func outcome(of reply: WebServiceResponse) -> String {
    let text = String(decoding: reply.body, as: UTF8.self)
    // A batch contains the result of its one item.
    let code = text.firstRange(of: #""serverErrorCode":""#).map {
      String(text[$0.upperBound...].prefix { $0 != "\"" })
    }
    let outcome: MatrixOutcome? =
      switch code {
      case nil: reply.status == 200 ? .answered : nil
      case "AUTHENTICATION_FAILED": .unauthenticated
      case "AUTHENTICATION_REQUIRED": .signIn
      case "ACCESS_DENIED": .denied
      case "NOT_FOUND", "ZONE_NOT_FOUND": .absent
      case "BAD_REQUEST": .badRequest
      default: nil
      }
    return outcome?.rawValue ?? code ?? "\(reply.status)"
  }

  /// The markers in a reply that must not contain them.
  private static func leaks(in reply: WebServiceResponse, to caller: MatrixCaller) -> [String] {
    guard caller.column != .owner else { return [] }
    let headers = reply.headers.map { "\($0.key): \($0.value)" }.joined(separator: "\n")
    let text = headers + String(decoding: reply.body, as: UTF8.self)
    var markers = [MatrixMarker.hidden]
    if !caller.mayReadShared { markers.append(MatrixMarker.shared) }
    return markers.filter { text.contains($0) }.map { "\($0) to \(caller.rawValue)" }
  }
}

extension Array {
  fileprivate func asyncMap<Result>(
    _ transform: (Element) async throws -> Result
  ) async rethrows -> [Result] {
    var results: [Result] = []
    for element in self { results.append(try await transform(element)) }
    return results
  }
}
