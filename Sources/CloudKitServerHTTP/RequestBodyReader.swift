import Foundation
import Hummingbird
import HummingbirdCore
import NIOCore
import NIOFoundationCompat

/// Reads a body up to a limit, and past the limit reads without keeping.
struct RequestBodyReader {
  enum Body: Equatable {
    case whole(Data)
    case tooLarge
  }

  /// Bytes.
  let limit: Int

  /// Clients read the answer only after they have sent what they began to send, so what is too
  /// large is let in and dropped rather than cut off.
  func read(_ request: Request) async throws -> Body {
    let announced = request.headers[.contentLength].flatMap { Int($0) } ?? 0
    // Such a client waits for leave to send; it gets the answer in its place.
    if announced > limit, request.headers[.expect] != nil { return .tooLarge }
    var buffer = ByteBuffer()
    buffer.reserveCapacity(min(announced, limit))
    var count = 0
    for try await part in request.body {
      count += part.readableBytes
      if count > limit {
        buffer = ByteBuffer()
      } else {
        buffer.writeImmutableBuffer(part)
      }
    }
    return count > limit ? .tooLarge : .whole(Data(buffer: buffer, byteTransferStrategy: .noCopy))
  }
}

extension RequestBodyReader {
  /// Lets a body in without keeping it; false where it is longer than the limit.
  func drop(_ request: Request) async throws -> Bool {
    if request.headers[.expect] != nil { return false }
    var count = 0
    for try await part in request.body {
      count += part.readableBytes
      if count > limit { return false }
    }
    return true
  }
}
