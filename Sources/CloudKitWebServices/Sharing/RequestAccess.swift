/// The reply of `records/request-access`, one item per short ID.
package struct AccessRequestsResponse: Codable, Hashable, Sendable {
  package var results: [ItemResult<AccessRequestReceipt>]

  package init(results: [ItemResult<AccessRequestReceipt>]) {
    self.results = results
  }
}

/// Confirms that an access request was accepted; it does not reveal whether the share exists.
package struct AccessRequestReceipt: Codable, Hashable, Sendable {
  package var shortGUID: ShortGUID

  package init(shortGUID: ShortGUID) {
    self.shortGUID = shortGUID
  }
}
