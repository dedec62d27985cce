import CloudKitServerHTTP
import Foundation
import Logging
import Synchronization
import Testing

@Suite("The log in text")
struct TextLogTests {
  @Test("A message is one line, and quoted text contains no terminal controls")
  func lines() {
    let lines = Mutex<[String]>([])
    var logger = Logger(label: "watershed") { label in
      TextLogHandler(label: label, level: .info) { line in
        lines.withLock { $0.append(String(decoding: line, as: UTF8.self)) }
      }
    }
    logger[metadataKey: "container"] = "a\nwarning watershed: forged"
    logger.warning("the issuer said \u{1B}]0;title\u{07}\r\u{202E}x é", metadata: ["n": "1"])
    logger.debug("not of this level")
    let written = lines.withLock { $0 }
    #expect(written.count == 1)
    let line = written.first ?? ""
    #expect(line.hasSuffix("\n"))
    #expect(line.dropLast().allSatisfy { $0 != "\n" && $0 != "\r" && $0 != "\u{1B}" })
    #expect(
      line.contains(
        #"warning watershed: container=a\u{A}warning watershed: forged n=1 ["#
      )
    )
    #expect(line.hasSuffix(#"the issuer said \u{1B}]0;title\u{7}\u{D}\u{202E}x é"# + "\n"))
  }
}
