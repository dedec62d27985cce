import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

/// Texts of clients in which a separator or a sign of markup is one `Character` with its neighbor: U+0D4E joins the next
/// scalar, U+0301 the one before.
///
/// Browsers, proxies and the kernel read bytes. The texts are compared as bytes here too: `contains` of a text would
/// not find the joined sign.
@Suite("Separators that are joined to other scalars")
struct JoinedSeparatorTests {
  @Test(
    "Pages escape signs of markup that are joined to other scalars",
    arguments: [
      ("<", "&lt;"), (">", "&gt;"), ("&", "&amp;"), ("\"", "&quot;"), ("'", "&#39;"),
    ]
  )
  func markup(sign: String, entity: String) {
    for (before, after) in [("\u{0D4E}", "form"), ("x", "\u{0301}"), ("\u{0D4E}", "\u{0301}")] {
      let escaped = HTMLPage.escape(before + sign + after)
      #expect(Array(escaped.utf8) == Array(before.utf8) + Array(entity.utf8) + Array(after.utf8))
    }
  }

  @Test("The title of a share brings no markup into its page")
  func sharePage() async throws {
    let server = try await TestServer()
    let owner = try await server.person("ada")
    try await owner.makeZone()
    try await owner.save(.create, "root")
    let share = try await owner.share("root", publicPermission: .readOnly)
    let operation = RecordOperation.make(
      .forceUpdate,
      "share",
      ["cloudkit.title": .string("\u{0D4E}<meta http-equiv=refresh content=0;url=//evil.example>")],
      recordType: "cloudkit.share"
    )
    _ = try await owner.modify([operation])[0].get()
    let page = await server.send("GET", "/share/\(share.shortGUID ?? "")")
    #expect(page.status == 200)
    #expect(page.body.range(of: Data("http-equiv".utf8)) != nil)
    #expect(page.body.range(of: Data("<meta http-equiv".utf8)) == nil)
  }

  @Test("The origin of a refused page is no attribute of the sign-in page's script")
  func refusedOrigin() async throws {
    let server = try await TestServer()
    var page = server.visitor
    page.origin = "x\"\u{0301} src=https://evil.example/x.js y"
    let asked = await page.send(.listZones, Data("{}".utf8))
    let error = try WireCoding.decode(ErrorDictionary.self, from: asked.body)
    let link = try #require(error.redirectURL).dropFirst("http://127.0.0.1:8080".count)
    let signIn = await server.send("GET", String(link))
    #expect(signIn.status == 403)
    let bytes = signIn.body
    let script = try #require(bytes.range(of: Data("<script".utf8)))
    let end = try #require(bytes[script.lowerBound...].firstIndex(of: UInt8(ascii: ">")))
    let tag = String(decoding: bytes[script.lowerBound...end], as: UTF8.self)
    #expect(tag.wholeMatch(of: /<script nonce="[0-9a-f]+">/) != nil, "\(tag)")
    #expect(bytes.range(of: Data("evil.example".utf8)) != nil)
  }

  @Test("A browser sends the form of a device's code to this server only")
  func devicePage() async throws {
    let server = try await TestServer()
    let page = await server.send("GET", "/activate")
    #expect(page.headers["content-security-policy"]?.contains("form-action 'self'") == true)
  }

  @Test("A path and a query are divided at bytes")
  func targets() {
    let target = RequestTarget("/a/\u{0301}b?\u{0301}x=1&\u{0301}y=\u{0301}2")
    #expect(target.parts.map { Array($0.utf8) } == [Array("a".utf8), Array("\u{0301}b".utf8)])
    #expect(target.query.count == 2)
    #expect(target.query["\u{0301}y"] == "\u{0301}2")
  }

  @Test("Names and paths of files are divided at bytes")
  func names() {
    let limits = ServiceLimits()
    #expect(!NameRules.isContainerName("a/\u{0301}b", limits))
    #expect(!NameRules.isContainerName("a\u{0D4E}/b", limits))
    for path in ["../\u{0301}x", "a/../\u{0301}x", "a\u{0D4E}/../x"] {
      let file = BackupManifest.File(path: path, size: 0, checksum: "")
      #expect(!file.isInside, "\(path)")
    }
    #expect(BackupManifest.File(path: "a/b", size: 0, checksum: "").isInside)
  }

  @Test("An address in brackets has nothing but a port behind it")
  func addresses() {
    #expect(SenderAddress.withoutPort("[192.0.2.7]:443") == "192.0.2.7")
    for text in ["[192.0.2.7]\u{0D4E}, 203.0.113.9", "[192.0.2.7]x", "192.0.2.7:\u{0301}443"] {
      #expect(SenderAddress(text)?.network == "unknown", "\(text)")
    }
  }
}
