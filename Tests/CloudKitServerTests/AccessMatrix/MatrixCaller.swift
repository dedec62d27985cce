/// The sender of a request in the matrix: a kind of credential, or a participation in the owner's
/// share.
enum MatrixCaller: String, CaseIterable {
  // No credential, or one that is not valid here.
  case noCredential, unknownToken, otherContainersToken, otherEnvironmentsToken, foreignOrigin
  case operatorsBearer, unknownKey, wrongSignature, oldSignature, removedKey
  case otherContainersKey, otherEnvironmentsKey
  // A valid API token without a valid user token.
  case tokenAlone, wordNull, garbage, refreshToken, expiredSession, revokedSession, revokedDevice
  case otherContainersSession, disabledAccount, deletedAccount, administratorsSession
  // The token of a public share, for its zone and for another one of the same owner.
  case visitor, visitorElsewhere
  case serverKey, replayedSignature
  // Signed-in users.
  case stranger, administrator, invited, reader, writer, removed
  // The owner, in another environment and in another container.
  case ownerInProduction, ownerInOtherContainer
  case owner

  /// Callers with equal rights share a column.
  var column: Column {
    switch self {
    case .noCredential, .unknownToken, .otherContainersToken, .otherEnvironmentsToken,
      .foreignOrigin,
      .operatorsBearer, .unknownKey, .wrongSignature, .oldSignature, .removedKey,
      .otherContainersKey, .otherEnvironmentsKey:
      .unauthenticated
    case .tokenAlone, .wordNull, .garbage, .refreshToken, .expiredSession, .revokedSession,
      .revokedDevice, .otherContainersSession, .disabledAccount, .deletedAccount,
      .administratorsSession:
      .anonymous
    case .visitor: .visitor
    case .visitorElsewhere: .visitorElsewhere
    case .serverKey, .replayedSignature: .serverKey
    // The right to administer does not include reading.
    case .stranger, .administrator: .stranger
    case .invited: .invited
    case .reader: .reader
    case .writer: .writer
    case .removed: .removed
    case .ownerInProduction: .production
    case .ownerInOtherContainer: .otherContainer
    case .owner: .owner
    }
  }

  enum Column {
    case unauthenticated, anonymous, visitor, visitorElsewhere, serverKey
    case stranger, invited, reader, writer, removed, production, otherContainer, owner
  }

  /// Whether the replies to a caller may contain the owner's shared data.
  var mayReadShared: Bool {
    switch column {
    case .reader, .writer, .owner: true
    case .unauthenticated, .anonymous, .visitor, .visitorElsewhere, .serverKey, .stranger,
      .invited, .removed, .production, .otherContainer:
      false
    }
  }
}

/// The outcome of a request.
enum MatrixOutcome: String {
  /// The credential is invalid, or not valid for this request.
  case unauthenticated = "u"
  /// A user must sign in.
  case signIn = "s"
  /// The endpoint is not for this database, or the request is invalid in it.
  case badRequest = "b"
  /// The zone, record or share does not exist for the caller.
  case absent = "a"
  case denied = "d"
  case answered = "y"
}

/// One row of the matrix: the outcome for each column.
///
/// A row with a missing cell does not compile.
struct MatrixRow {
  let anonymous, visitor, visitorElsewhere, serverKey: MatrixOutcome
  let stranger, invited, reader, writer, removed, production: MatrixOutcome
  let otherContainer, owner: MatrixOutcome

  init(
    _ anonymous: MatrixOutcome,
    _ visitor: MatrixOutcome,
    _ visitorElsewhere: MatrixOutcome,
    _ serverKey: MatrixOutcome,
    _ stranger: MatrixOutcome,
    _ invited: MatrixOutcome,
    _ reader: MatrixOutcome,
    _ writer: MatrixOutcome,
    _ removed: MatrixOutcome,
    _ production: MatrixOutcome,
    _ otherContainer: MatrixOutcome,
    _ owner: MatrixOutcome
  ) {
    self.anonymous = anonymous
    self.visitor = visitor
    self.visitorElsewhere = visitorElsewhere
    self.serverKey = serverKey
    self.stranger = stranger
    self.invited = invited
    self.reader = reader
    self.writer = writer
    self.removed = removed
    self.production = production
    self.otherContainer = otherContainer
    self.owner = owner
  }

  /// A row with the same outcome for all signed-in callers, and for all others.
  init(_ other: MatrixOutcome, _ key: MatrixOutcome, people all: MatrixOutcome) {
    self.init(other, other, other, key, all, all, all, all, all, all, all, all)
  }

  func outcome(_ column: MatrixCaller.Column) -> MatrixOutcome {
    switch column {
    case .unauthenticated: .unauthenticated
    case .anonymous: anonymous
    case .visitor: visitor
    case .visitorElsewhere: visitorElsewhere
    case .serverKey: serverKey
    case .stranger: stranger
    case .invited: invited
    case .reader: reader
    case .writer: writer
    case .removed: removed
    case .production: production
    case .otherContainer: otherContainer
    case .owner: owner
    }
  }
}
