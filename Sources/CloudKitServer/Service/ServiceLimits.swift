import CloudKitWebServices

/// All limits of the service, with the documented figures as defaults.
package struct ServiceLimits: Hashable, Sendable {
  /// Operations of one `records/modify`, items of one look-up, tokens of one `assets/upload`.
  package var itemsPerRequest = 200
  /// Values of one request's JSON, members of objects and elements of arrays together: each takes
  /// many times its bytes when it is decoded.
  package var valuesPerRequest = 500_000
  /// Names in each `desiredKeys` or `desiredRecordTypes` of a request: a type has fewer fields.
  package var keysPerRequest = 1000
  /// Elements of each array of a request that has no limit of its own, lists in fields excepted: a
  /// list of full size has as many as fit in a record.
  package var elementsPerArray = 1000
  /// Records of one reply.
  package var recordsPerReply = 200
  /// Bytes of records in one page of a feed or a query, as written to the reply.
  ///
  /// A page that reaches them ends there, with a token or marker for the rest; it has at least one
  /// record.
  package var bytesPerPage = 16 * 1_048_576
  /// Bytes of records that one look-up, or the reply of one `records/modify`, may have.
  ///
  /// It has no further page, so a larger one is refused and the client requests fewer records.
  package var bytesPerReply = 64 * 1_048_576
  /// Filters of one query.
  package var clausesPerQuery = 100
  /// Sort descriptors of one query: each field is computed for every record that is examined.
  package var sortKeysPerQuery = 3
  /// Values of all filters of one query together: each is a look-up in an index.
  package var valuesPerQuery = 2000
  /// Values, or words, of one filter.
  package var valuesPerFilter = 1000
  /// Records that one query examines before it returns those found so far and a marker.
  package var recordsScanned = 10_000
  /// Records that one query examines if no index has its order and the records are sorted in
  /// memory: above this number, each portion of them is sorted by itself.
  package var recordsOrdered = 50_000
  /// Seconds that one look-up, query or feed may read in all, including the time in the queue.
  package var readTime = 20.0
  /// Threads of these reads besides the pool; one user has at most half of them, and one is for
  /// look-ups alone.
  package var readThreads = 4
  /// Reads that may be queued for a thread; a further one gets TRY_AGAIN_LATER.
  package var waitingReads = 1000
  /// Reads of one user, or of one site of anonymous callers, that may be queued.
  package var waitingReadsPerReader = 100
  /// Records that match a filter and are sorted in memory; if more match, the index of the order is
  /// scanned instead.
  package var recordsSortedInMemory = 1000
  /// Rows that one `records/modify` may write besides its records: entries of indexes, references
  /// with an action, and uses of assets.
  ///
  /// They are written in one transaction, which other writers wait for. More are refused, and the
  /// client sends fewer records at a time; entries that a single record loses are not counted.
  package var linkedRowsPerRequest = 100_000
  /// Rows besides records (`linkedRowsPerRequest`) in a second that one user may add on average.
  package var linkedRowsPerSecond = 20_000.0
  /// Rows besides records that one user may add at once: a library that is saved for the first
  /// time.
  package var linkedRowBurst = 2_000_000.0
  /// Rows that one transaction deletes of an ended zone, a purged database or one that is reset, or
  /// expired tombstones of a zone; the others follow in further transactions, which other writers
  /// do not wait for.
  package var rowsPerRemoval = 2000
  /// Bytes of the rows that one transaction deletes (`rowsPerRemoval`); the row that exceeds them
  /// is deleted too.
  package var bytesPerRemoval: Int64 = 8 * 1_048_576
  /// Bytes of a record's fields, assets not counted.
  package var recordSize = 1_048_576
  /// Bytes of one file.
  package var assetSize = 50 * 1_048_576
  /// Bytes of one `records/modify`: 200 records of full size in base64 would be more, but no client
  /// sends that.
  package var recordsRequestSize = 64 * 1_048_576
  /// Bytes of any other request except an upload: names, filters, subscriptions.
  package var requestSize = 4 * 1_048_576
  /// Bytes of a request from which on it is decoded on a thread besides the pool, one of each user
  /// at a time.
  package var largeRequestSize = 64 * 1024
  /// Threads that decode these requests.
  package var decodingThreads = 2
  /// Bytes of the largest request without a user token or server key: reads of a public database
  /// are small.
  package var anonymousRequestSize = 1_048_576
  /// Bytes of a page's form, or of a call about an account: a few names, a password, a link.
  package var formSize = 64 * 1024
  /// Bytes of an administrator's call: the largest is a schema, about a kilobyte for each type.
  package var administrationSize = 4 * 1_048_576
  /// Record types of a schema that saves in development have added.
  package var recordTypes = 500
  /// Fields of a record, and of a record type that saves in development have extended.
  package var fieldsPerType = 1000
  /// Fields of all record types of a schema together, counted when a save in development adds one.
  package var fieldsPerSchema = 10_000
  /// Records that the deletion of one record may directly cascade to, except in public databases,
  /// where other users could use them up.
  package var deleteSelfReferrers = 750
  /// Records that the deletions of one request may cascade to in all, through references to
  /// references: they are read in the lane of the writers, which other writes wait for.
  ///
  /// In a public database, further records of other users than the deleted record's stay.
  package var recordsPerCascade = 10_000
  /// Bytes of stored records that the decision of one `records/modify` reads: those it changes, the
  /// targets of their references, and the records that are deleted along.
  package var bytesPerDecision = 256 * 1_048_576
  /// Times that a batch which is not atomic is planned, each time without the operations that have
  /// failed; if there are failures still, its other operations fail too.
  package var planningAttempts = 16
  /// Levels of parents from a record to its root, and levels below a record that is added to a
  /// share: each level is read by itself.
  package var parentDepth = 1000
  /// Characters of record and zone names.
  package var nameLength = 255
  /// Existing zones of one database.
  package var zonesPerDatabase = 1000
  /// Participants of one share, besides its owner.
  package var participantsPerShare = 100
  /// Entries in the lists of participants of one request's shares together: each may be looked up
  /// in the lane of the writers, which other writes wait for.
  package var participantsPerRequest = 1000
  /// Pending requests to take part in one share; further requests are refused.
  package var requestersPerShare = 100
  /// Users whose requests to take part in one share are blocked.
  package var blockedPerShare = 1000
  /// Bytes of a share's participants, participations and access requests: each request of each
  /// participant reads them.
  ///
  /// A participant's ID, contacts and names have at most `nameLength` bytes each.
  package var shareStateSize = 512 * 1024
  /// Times that one user may join the same share; leaving and joining again counts until the traces
  /// of the zone's deletions expire.
  package var participationsPerUser = 20
  /// Times that all users together may join the same share.
  package var participationsPerShare = 2000
  /// Shares that one user may join in a container's environment, ended ones included.
  package var joinedSharesPerUser = 5000
  /// Records that one request may add to or remove from shares, besides those it saves.
  ///
  /// Their names are kept in memory, and their rows are written in one transaction, which other writers
  /// wait for; both the rows and the traces of records that leave count as `linkedRowsPerSecond`.
  package var recordsPerShareChange = 100_000
  /// Records that a request may remove from shares if it only deletes.
  ///
  /// Single saves add records to a share beyond what one request may move, and its owner has to be able
  /// to end it. Names are kept in memory here too.
  package var recordsPerShareEnding = 1_000_000
  /// Seconds that an upload URL is valid.
  package var uploadURLLifetime = 15.0 * 60
  /// Concurrent uploads of one user.
  package var openUploads = 32
  /// Bytes of files in a second that one user may upload on average; an upload that has begun ends,
  /// the next one waits.
  package var uploadBytesPerSecond = 16.0 * 1_048_576
  /// Bytes of files that one user may upload at once: a library that is uploaded for the first
  /// time.
  package var uploadBurst = 4096.0 * 1_048_576
  /// Seconds that the reply of a batch with a sequence number is kept, after the device's last
  /// batch: a device that did not get the reply may be away that long.
  package var replyLifetime = 2.0 * 365 * 24 * 60 * 60
  /// Seconds that a reply is kept after a later launch of the app has named it as finished, as long
  /// as `sequenceDevices` leaves room for it: a backup of the device that is restored within that
  /// time may have the reply's batch open.
  package var finishedReplyLifetime = 90.0 * 24 * 60 * 60
  /// Devices of one user, in one database, whose replies are kept; the longest unused goes first.
  package var sequenceDevices = 64
  /// Users that one user may look up within an hour, by address, number or record name.
  package var peopleLookedUpPerHour = 1000
  /// Containers that one user may sign in to.
  package var containersPerUser = 100
  /// Subscriptions of one user in one database: each may be matched with every save.
  package var subscriptionsPerUser = 500
  /// Bytes of one subscription.
  package var subscriptionSize = 32 * 1024
  /// Filters of all subscriptions of one user in one database together: each is tested with every
  /// save of its record type.
  package var subscriptionFiltersPerUser = 1000
  /// Bytes of all subscriptions of one user in one database together: each save reads those to its
  /// record type.
  package var subscriptionBytesPerUser = 1_048_576
  /// Bytes of subscriptions that one save in a public database reads, with 512 for each; beyond
  /// these, the devices of the users with the most bytes fetch all changes.
  package var subscriptionBytesPerSave = 16 * 1_048_576
  /// Filters that one save tests, each with each record; beyond these, the devices of the users
  /// with the most filters fetch all changes.
  package var subscriptionTestsPerSave = 1_000_000
  /// Bytes of one notification; a larger one is sent without its texts and fields.
  package var notificationSize = 4096
  /// Notifications of query subscriptions that one commit may cause for one user, as many as are
  /// kept for a device; beyond these, the user's devices fetch all changes.
  package var notificationsPerCommit = 256
  /// Bytes of the notifications that one commit may cause for one user; further ones are sent
  /// without their texts and fields.
  package var notificationBytesPerPerson = 64 * 1024
  /// Bytes of the notifications that one commit may cause for all users together; beyond these,
  /// each user receives one, without texts and fields.
  package var notificationBytesPerCommit = 4 * 1_048_576
  /// Bytes of notifications in a second that one user's saves may cause on average; beyond these,
  /// each recipient of a save's notifications receives one, without texts and fields.
  ///
  /// Events are kept for an hour, in no quota.
  package var notificationBytesPerSecond = 64.0 * 1024
  /// Bytes of notifications that one user's saves may cause at once.
  package var notificationBurst = 256.0 * 1_048_576
  /// Seconds that a download URL is valid.
  package var downloadURLLifetime = 60.0 * 60
  /// Seconds within which an uploaded file must be saved in a record; a file that was not is
  /// removed an hour or two later.
  package var receiptLifetime = 24.0 * 60 * 60
  /// Seconds that a session without "stay signed in" is valid; use renews it.
  package var sessionLifetime = 30.0 * 60
  /// Seconds that a session with "stay signed in" is valid; use renews it.
  package var keptSessionLifetime = 14.0 * 24 * 60 * 60
  /// Seconds that the page of a user's own account stays signed in.
  package var ownPageLifetime = 15.0 * 60
  /// Seconds after which a session without "stay signed in" ends regardless of its use: a copied
  /// token must not be valid forever.
  package var sessionAge = 24.0 * 60 * 60
  /// Seconds after which a session with "stay signed in" ends regardless of its use.
  package var keptSessionAge = 90.0 * 24 * 60 * 60
  /// Seconds after which a device that does not listen is removed.
  package var deviceLifetime = 90.0 * 24 * 60 * 60
  /// Devices of one user in a container's environment; a further one replaces the one that has not
  /// listened for longest.
  package var devicesPerUser = 50
  /// Long polls and event streams of one device at a time; a further one ends the oldest.
  package var listenersPerDevice = 16
  /// Seconds after which a long poll answers `null`.
  package var longPollTimeout = 45.0
  /// Seconds that tombstones of records are kept; older change tokens have expired.
  package var traceLifetime = 90.0 * 24 * 60 * 60
  /// Seconds that commit events are kept for other processes.
  package var eventLifetime = 60.0 * 60
  /// Seconds between two checks for commits of other processes.
  package var eventPollInterval = 2.0

  // Passwords
  /// Sign-ins with a wrong password before a name is locked for one network: an IPv4 address or 64
  /// bits of an IPv6 address.
  package var failedSignIns = 10
  /// Failed sign-ins of all names from one network before its sign-ins are locked: a family or a
  /// school shares an address.
  package var failedSignInsPerNetwork = 30
  /// Failed sign-ins of all names from one site before its sign-ins are locked: 48 bits of an IPv6
  /// address, all of which one customer of a provider may have.
  package var failedSignInsPerSite = 120
  /// Failed sign-ins of one name from one site before the name is locked there.
  ///
  /// Networks from which the name has signed in are excluded from this and from the limit per
  /// account: in some places a site is many customers.
  package var failedSignInsOfNamePerSite = 30
  /// Failed sign-ins of one name from all networks from which it has not signed in before the name
  /// is locked there: NIST SP 800-63B allows at most 100.
  package var failedSignInsPerAccount = 100
  /// Seconds that a name or a network is locked.
  package var signInPause = 15.0 * 60
  /// Seconds that a name is locked for all networks from which it has not signed in, and within
  /// which its failures are counted: OWASP's ASVS allows 100 an hour.
  package var accountPause = 60.0 * 60
  /// Wrong codes of an account's second factor, after right passwords and from all networks
  /// together, before codes are refused for a while.
  package var failedCodes = 10
  /// Seconds that codes are refused: with three of a million codes valid at a time, an attacker
  /// with the password needs years to find one.
  package var codePause = 60.0 * 60
  /// Seconds that a network counts as known for a name after a sign-in.
  package var knownNetworkLifetime = 90.0 * 24 * 60 * 60
  /// The cost of scrypt for a password, a power of two: 32,768 takes 32 MB.
  package var passwordRounds = 32_768
  /// The parallelization of scrypt, computed sequentially: OWASP recommends three with 32,768
  /// rounds, which needs a quarter of the memory of its other choice (131,072 rounds, once).
  package var passwordRepetitions = 3
  /// Characters that a new password has at least and at most; those that are guessed first are
  /// refused.
  package var passwordRule = PasswordRule()
  /// Sign-ins that may be queued for the one lane that hashes passwords: ten seconds' work.
  package var waitingHashes = 40
  /// Sign-ins of one network that may be queued for the hashing lane, so that none fills the whole
  /// queue.
  package var waitingHashesPerNetwork = 8
  /// Sign-ins of one site, 48 bits of an IPv6 address, that may be queued for the hashing lane.
  package var waitingHashesPerSite = 12
  /// Places of the hashing queue that are reserved for names that have signed in from the sender's
  /// network before, and for calls of the server's own process.
  package var waitingHashesOfKnown = 10
  /// Reserved places of the hashing queue that one network may take.
  package var waitingHashesPerKnownNetwork = 3
  /// Seconds that the date of a signed request may differ, in either direction.
  package var signatureWindow = 600.0
  /// Seconds after which an unused refresh token expires; each use renews it.
  package var refreshTokenLifetime = 180.0 * 24 * 60 * 60
  /// Devices of one account that stay signed in, in all containers; a further one signs out the one
  /// that was unused for longest.
  package var grantsPerAccount = 100
  /// Seconds that the link of an invitation is valid.
  package var invitationLifetime = 7.0 * 24 * 60 * 60
  /// Seconds that the link of a password reset is valid.
  package var passwordResetLifetime = 60.0 * 60
  /// Seconds that the link which confirms an e-mail address is valid.
  package var addressVerificationLifetime = 24.0 * 60 * 60
  /// Seconds that the link to a user's own data is valid.
  package var exportLinkLifetime = 15.0 * 60
  /// Downloads of users' own data at a time; each holds a page of records in memory.
  ///
  /// An account has one, and a site (an IPv4 address, or 48 bits of an IPv6 address) half of them.
  package var runningExports = 8
  /// Bytes in a second that a client takes of a download of own data; one that takes fewer loses
  /// its place where another account asks for one.
  package var exportRate = 16 * 1024
  /// Mails that may wait to be sent, and as many requests for one before they are looked up.
  package var waitingMails = 500
  /// Places of `waitingMails` that are reserved for notices of changes to an account; the other
  /// mails have the rest.
  package var waitingNotices = 100
  /// Seconds after which a mail that no mail server accepts is discarded.
  package var mailLifetime = 24.0 * 60 * 60
  /// Mails that users may request to one address in an hour, for address confirmations and password
  /// resets each, and links that one account may request.
  package var mailsPerAddress = 5
  /// Mails that users may request to all addresses in an hour, for address confirmations and
  /// password resets each.
  package var mailsPerHour = 1000
  /// Seconds between an account's deletion and the removal of its data.
  package var purgeDelay = 30.0 * 24 * 60 * 60
  /// Seconds that entries of the audit log are kept.
  package var auditLifetime = 400.0 * 24 * 60 * 60
  /// Seconds that audit entries of failed sign-ins are kept: anyone can cause them.
  package var auditFailureLifetime = 30.0 * 24 * 60 * 60
  /// Failed sign-ins within an hour that are logged, for accounts and for unknown names each.
  package var auditedFailuresPerHour = 1000
  /// Failed sign-ins of one account, and of one network, within an hour that are logged; the first
  /// of an account in an hour is always logged.
  package var auditedFailuresPerShare = 100
  /// Requests of apps that a server keeps for `watershed logs`, in memory; the oldest go first.
  package var loggedRequests = 10_000
  /// Bytes of the requests that are kept for `watershed logs`: names of zones and devices are as
  /// long as clients choose, up to 255 bytes.
  package var loggedRequestBytes = 8 * 1_048_576
  /// Average requests per second that one user, or one address without a signed-in user, may send;
  /// nil: no limit.
  package var requestsPerSecond: Double?
  /// Requests that one user, or one address without a signed-in user, may send in a burst.
  package var requestBurst = 200.0
  /// How many times as much the networks of one site may send together as one network: a site is 48
  /// bits of an IPv6 address, which one customer of a provider may have whole.
  package var networksPerSite = 8.0
  /// Bytes that one user's databases may hold in a container, assets included; nil: no
  /// limit.
  ///
  /// Each row counts 100 or 200 bytes besides its content, and each file 4,096, so that empty ones
  /// count too.
  package var userQuota: Int64?
  /// Bytes that a container's public database may have; nil: no limit.
  package var publicQuota: Int64?
  /// Bytes of records that one user may create in a container's public database, and the same in
  /// files that the user uploads to it or to another user's database that is shared with the user;
  /// nil: no limit.
  ///
  /// Files come back over `assetGrace`.
  package var publicUserQuota: Int64?
  /// Seconds that the file of an asset stays after the last record that used it: longer than any
  /// URL lives and any backup is kept.
  package var assetGrace = 30.0 * 24 * 60 * 60

  package init() {}
}

extension ServiceLimits {
  func checkCount(_ count: Int) throws(ErrorDictionary) {
    guard count <= itemsPerRequest else {
      throw ErrorDictionary(
        .badRequest,
        "a request has at most \(itemsPerRequest) items, this one has \(count)",
        extension: ErrorExtension(code: .limitExceeded)
      )
    }
  }

  /// A device's own name, which is stored with every record that it saves; nil if it is too long.
  func deviceName(_ text: String) -> String? { text.utf8.count <= nameLength ? text : nil }
}
