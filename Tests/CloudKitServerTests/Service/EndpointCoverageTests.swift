import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

/// Compares the coverage page with the server.
@Suite("The coverage page")
struct EndpointCoverageTests {
  private struct Line {
    var path: String
    var isAnswered: Bool
  }

  /// The lines about web services: a path in the first column, its status in the second.
  private func lines() throws -> [Line] {
    let page = TestPackage.root.appendingPathComponent("Documentation/Coverage.md")
    let text = try String(contentsOf: page, encoding: .utf8)
    let part = try #require(text.components(separatedBy: "## CloudKit web services\n").last)
    return part.split(separator: "\n").compactMap { line in
      let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
      guard cells.count >= 2, cells[0].hasPrefix("`") else { return nil }
      return Line(
        path: cells[0].trimmingCharacters(in: ["`"]),
        isAnswered: cells[1] == "answered"
      )
    }
  }

  @Test("The page lists every endpoint with its actual status")
  func endpoints() async throws {
    let lines = try lines()
    let answered = Set(lines.filter(\.isAnswered).map(\.path))
    #expect(answered == Set(Endpoint.allCases.map(\.rawValue)))
    #expect(lines.contains { !$0.isAnswered })

    let server = try await TestServer()
    let person = try await server.person()
    let tokens = "ckAPIToken=\(server.apiToken)&ckWebAuthToken=\(person.webAuthToken ?? "")"
    for line in lines {
      let isOfDevices = line.path.hasPrefix("tokens/")
      let place = "1/\(TestServer.container)/development"
      let path =
        isOfDevices ? "/device/\(place)/\(line.path)" : "/database/\(place)/public/\(line.path)"
      let reply = await server.send("POST", "\(path)?\(tokens)", body: Data("{}".utf8))
      let error = try? WireCoding.decode(ErrorDictionary.self, from: reply.body)
      let hasHandler = error?.reason != "could not find handler for endpoint"
      #expect(hasHandler == line.isAnswered, "\(line.path)")
      #expect((reply.status == 404) == !line.isAnswered, "\(line.path)")
    }
  }
}
