import CloudKitWebServices
import Foundation
import Logging

/// The replies for errors; the details of those that are not the client's go to the log.
struct RequestFailures: Sendable {
  let logger: Logger

  /// Converts an error to one that clients may read; the details go to the log.
  func dictionary(of error: any Error, uuid: String) -> ErrorDictionary {
    if let error = error as? ErrorDictionary { return error }
    // The storage failed: a full disk, a damaged file or row. The client's data is not the cause.
    logger.error(
      "the request could not be answered",
      metadata: ["requestID": "\(uuid)", "error": "\(error)"]
    )
    return Self.storageFailure(error)
  }

  /// Converts any error to its reply.
  func reply(_ error: any Error, uuid: String) -> WebServiceResponse {
    var dictionary = dictionary(of: error, uuid: uuid)
    dictionary.uuid = uuid
    var headers: [String: String] = [:]
    if let seconds = dictionary.retryAfter {
      headers[WebServiceName.retryAfter] = String(Int(seconds.rounded(.up)))
    }
    return WebServiceResponse(
      status: dictionary.serverErrorCode.httpStatus,
      headers: headers,
      body: (try? WireCoding.encode(dictionary)) ?? Data("{}".utf8)
    )
  }

  /// The error that the client receives; statements and files are only logged.
  private static func storageFailure(_ error: any Error) -> ErrorDictionary {
    let file = error as NSError
    let isOfFiles = [NSCocoaErrorDomain, NSPOSIXErrorDomain].contains(file.domain)
    let isFull =
      (error as? StorageFailure)?.kind == .full
      || (isOfFiles && file.code == CocoaError.Code.fileWriteOutOfSpace.rawValue)
    if isFull {
      return ErrorDictionary(
        .tryAgainLater,
        "the server's disk is full",
        retryAfter: 60
      )
    }
    if (error as? StorageFailure)?.kind == .locked {
      return ErrorDictionary(.tryAgainLater, "the database is busy", retryAfter: 1)
    }
    return ErrorDictionary(.internalError, "the server failed to answer; its log has the reason")
  }
}
