import Foundation

/// The body of `tokens/create` and `tokens/register`.
package struct DeviceTokenRequest: Codable, Hashable, Sendable {
  package var apnsEnvironment: String?
  /// In `tokens/register`.
  package var apnsToken: String?
  /// Names the device, so that it is not told of its own changes.
  package var clientId: String?

  package init(
    apnsEnvironment: String? = nil,
    apnsToken: String? = nil,
    clientId: String? = nil
  ) {
    self.apnsEnvironment = apnsEnvironment
    self.apnsToken = apnsToken
    self.clientId = clientId
  }
}

/// The reply of `tokens/create` and `tokens/register`.
package struct DeviceTokenResponse: Codable, Hashable, Sendable {
  package var apnsEnvironment: String
  package var apnsToken: String
  /// Answers one notification per request, or `null` when none came for a while.
  package var webcourierURL: String
  /// An extension: the same as a stream of server-sent events.
  package var eventStreamURL: String?

  package init(
    apnsEnvironment: String,
    apnsToken: String,
    webcourierURL: String,
    eventStreamURL: String? = nil
  ) {
    self.apnsEnvironment = apnsEnvironment
    self.apnsToken = apnsToken
    self.webcourierURL = webcourierURL
    self.eventStreamURL = eventStreamURL
  }
}
