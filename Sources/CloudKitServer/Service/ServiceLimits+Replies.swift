import CloudKitWebServices

extension ServiceLimits {
  /// Throws if a reply of several records has become too large.
  func checkReply(_ bytes: Int, count: Int) throws(ReplyTooLarge) {
    guard bytes > bytesPerReply, count > 1 else { return }
    throw ReplyTooLarge(limit: bytesPerReply)
  }

  /// The client's page size within the limit; some clients send 0 for the default.
  func pageSize(_ wish: Int?) throws(ErrorDictionary) -> Int {
    guard let wish, wish != 0 else { return recordsPerReply }
    guard wish > 0 else {
      throw ErrorDictionary(.badRequest, "resultsLimit must not be negative")
    }
    return min(wish, recordsPerReply)
  }
}

/// A reply without further pages would be too large.
struct ReplyTooLarge: Error {
  var limit: Int

  var dictionary: ErrorDictionary {
    ErrorDictionary(
      .badRequest,
      "the records of the reply have more than \(limit) bytes together; name fewer of them, or "
        + "fewer desiredKeys",
      extension: ErrorExtension(code: .limitExceeded)
    )
  }
}
