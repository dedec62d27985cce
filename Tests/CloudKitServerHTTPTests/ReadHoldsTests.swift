import Testing

@testable import CloudKitServerHTTP

@Suite("Held reads of a connection")
struct ReadHoldsTests {
  /// A connection's holds: an expectation calls nothing that mutates a value.
  private final class Connection {
    private var holds = ReadHolds()

    var isHolding: Bool { holds.isHolding }

    func hold(_ reason: ReadHolds.Reason, of request: Int) { holds.hold(reason, of: request) }

    func release(_ reason: ReadHolds.Reason, of request: Int) {
      holds.release(reason, of: request)
    }

    func begins(isWritable: Bool) -> Bool { holds.begins(isWritable: isWritable) }

    func resumes(isWritable: Bool) -> Bool { holds.resumes(isWritable: isWritable) }
  }

  @Test("A read begins where nothing holds it, and no read is repeated")
  func free() {
    let holds = Connection()
    #expect(holds.begins(isWritable: true))
    #expect(!holds.resumes(isWritable: true))
  }

  @Test("A held read begins once, when its reason is released", arguments: [false, true])
  func held(isUpload: Bool) {
    let reason: ReadHolds.Reason = isUpload ? .upload : .credentialCheck
    let holds = Connection()
    holds.hold(reason, of: 1)
    #expect(!holds.begins(isWritable: true))
    #expect(!holds.resumes(isWritable: true))
    holds.release(reason, of: 1)
    #expect(holds.resumes(isWritable: true))
    #expect(!holds.resumes(isWritable: true))
    #expect(!holds.isHolding)
  }

  @Test("The late end of a former request's upload releases nothing of the present request")
  func formerUpload() {
    let holds = Connection()
    holds.hold(.upload, of: 1)
    holds.hold(.credentialCheck, of: 2)
    #expect(!holds.begins(isWritable: true))
    holds.release(.upload, of: 1)
    #expect(!holds.resumes(isWritable: true))
    holds.release(.upload, of: 2)
    holds.release(.credentialCheck, of: 1)
    #expect(!holds.resumes(isWritable: true))
    holds.release(.credentialCheck, of: 2)
    #expect(holds.resumes(isWritable: true))
  }

  @Test("A read waits for the client to read its replies, and for every reason beside that")
  func unwritable() {
    let holds = Connection()
    #expect(!holds.begins(isWritable: false))
    #expect(!holds.resumes(isWritable: false))
    holds.hold(.upload, of: 3)
    #expect(!holds.resumes(isWritable: true))
    holds.release(.upload, of: 3)
    #expect(!holds.resumes(isWritable: false))
    #expect(holds.resumes(isWritable: true))
  }
}
