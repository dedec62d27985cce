import AsyncHTTPClient
import CloudKitServer
import Foundation
import Testing

/// The download of a user's own data, whose length is known only at its end.
@Suite("A user's own data over HTTP")
struct AccountExportOverHTTPTests {
  @Test("Browsers do not guess the type of the adapter's pages, and caches do not store them")
  func headers() async throws {
    try await withTemporaryFolder { folder in
      try await TestCloud.run(in: folder) { cloud in
        for path in ["/healthz", "/readyz", "/metrics", "/", "/nothing", "/account-data/x"] {
          let reply = try await cloud.get(cloud.url + path)
          #expect(reply.headers["x-content-type-options"] == "nosniff", "\(path)")
          #expect(reply.headers["cache-control"] == "no-store", "\(path)")
        }
      }
    }
  }

  @Test("The adapter's pages ask for HTTPS where the public address has it, also behind a proxy")
  func transportSecurity() async throws {
    try await withTemporaryFolder { folder in
      try await TestCloud.run(in: folder) { cloud in
        let url = cloud.url
        #expect(try await cloud.get(url + "/healthz").headers["strict-transport-security"] == nil)
        cloud.service.baseURL = "https://cloud.example.org"
        for path in ["/healthz", "/readyz", "/metrics", "/", "/nothing", "/account-data/x"] {
          let reply = try await cloud.get(url + path)
          #expect(reply.headers["strict-transport-security"] == "max-age=31536000", "\(path)")
        }
      }
    }
  }

  @Test("The archive is sent in chunks, without a length, and its path is in no log line")
  func chunks() async throws {
    try await withTemporaryFolder { folder in
      try await TestCloud.run(in: folder) { cloud in
        let query = "ckAPIToken=\(cloud.apiToken)&ckWebAuthToken=\(cloud.webAuthToken)"
        let reply = try await cloud.post(
          "\(cloud.url)/account/export-data?\(query)",
          Data(#"{"password":"\#(TestCloud.password)"}"#.utf8)
        )
        let url = try #require(JSONReply(reply).text("url"))
        // Programs that look at links before people do use none up.
        var look = HTTPClientRequest(url: url)
        look.method = .HEAD
        #expect(try await send(look).status == 404)
        let archive = try await cloud.get(url)
        #expect(archive.status == 200)
        #expect(archive.headers["content-length"] == nil)
        #expect(archive.headers["transfer-encoding"] == "chunked")
        #expect(archive.body.count.isMultiple(of: 512))
        #expect(archive.body.suffix(1024).allSatisfy { $0 == 0 })
        #expect(archive.text.contains("complete.json"))
        #expect(try await cloud.get(url).status == 403)
      }
    }
  }
}
