/// The reply of `records/request-access`, one item per short ID.
package struct AccessRequestsResponse: Codable, Hashable, Sendable {
  package var results: [ItemResult<AccessRequestReceipt>]

  package init(results: [ItemResult<AccessRequestReceipt>]) {
    self.results = results
  }
}

/// That a request was taken, which says nothing of the share.
package struct AccessRequestReceipt: Codable, Hashable, Sendable {
  package var shortGUID: ShortGUID

  package init(shortGUID: ShortGUID) {
    self.shortGUID = shortGUID
  }
}
