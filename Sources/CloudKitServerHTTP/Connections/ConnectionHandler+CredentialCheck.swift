import CloudKitServer
import CloudKitWebServices
import NIOCore

/// Large bodies: they arrive once the credential of their request has been checked.
extension ConnectionHandler {
  /// Checks the credential, and reads nothing more from the connection meanwhile.
  func checkCredential(of exchange: Exchange, _ context: ChannelHandlerContext) {
    exchange.credentialCheck = .isRunning
    holds.hold(.credentialCheck, of: exchange.number)
    let line = line(exchange, context)
    Task { [responder, incoming = exchange.incoming] in
      line.checked(await responder.refusalBeforeBody(of: incoming))
    }
  }

  /// Continues to read the request, or refuses it; if its body is incomplete, the connection is closed
  /// after the refusal.
  func finishCheck(of exchange: Exchange, _ refusal: WebServiceResponse?) {
    guard self.exchange === exchange, let context else { return }
    exchange.credentialCheck = .passed
    defer { release(.credentialCheck, of: exchange.number) }
    if let refusal { return send(StreamedResponse(refusal), exchange, context) }
    if exchange.isReceived { return endRequest(context) }
    sendContinue(exchange, context)
  }
}
