import Testing

@testable import CloudKitServerHTTP

@Suite("The sending side of a connection")
struct ConnectionOutputTests {
  @Test("Each event leads from each state to one state")
  func transitions() {
    let states: [ConnectionOutput] = [.open, .endHeld, .closing, .closed]
    let held = after(states) { $0.holdEnd() }
    #expect(held == [.endHeld, .endHeld, .closing, .closed])
    let taken = after(states) { _ = $0.takeHeldEnd() }
    #expect(taken == [.open, .open, .closing, .closed])
    let closing = after(states) { $0.beginClosing() }
    #expect(closing == [.closing, .closing, .closing, .closed])
    let closed = after(states) { $0.close() }
    #expect(closed == [.closed, .closed, .closed, .closed])
    #expect(states.map(\.isClosing) == [false, false, true, true])
  }

  @Test("A held end is taken once, and not from a connection that closes")
  func heldEnd() {
    var output = ConnectionOutput.open
    output.holdEnd()
    let taken = [output.takeHeldEnd(), output.takeHeldEnd()]
    #expect(taken == [true, false])
    output.holdEnd()
    output.beginClosing()
    let late = output.takeHeldEnd()
    #expect(!late)
  }

  private func after(
    _ states: [ConnectionOutput],
    _ event: (inout ConnectionOutput) -> Void
  ) -> [ConnectionOutput] {
    states.map { state in
      var state = state
      event(&state)
      return state
    }
  }
}
