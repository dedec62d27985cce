/// Everything that is bounded, with the documented figures as defaults.
package struct ServiceLimits: Hashable, Sendable {
  /// Operations of one `records/modify`, items of one look-up, tokens of one `assets/upload`.
  package var itemsPerRequest = 200
  /// Records of one reply.
  package var recordsPerReply = 200
  /// Bytes of records in one page of a feed or a query, as they will be written.
  ///
  /// A page that reaches them ends there, with a token or marker for the rest; it holds one record at
  /// least.
  package var bytesPerPage = 16 * 1_048_576
  /// Bytes of records that one look-up, or the reply of one `records/modify`, may hold.
  ///
  /// It has no further page, so a larger one is refused and the client asks for fewer records.
  package var bytesPerReply = 64 * 1_048_576
  /// Filters of one query.
  package var clausesPerQuery = 100
  /// Fields in the order of one query: each is computed for every record that is looked at.
  package var sortKeysPerQuery = 3
  /// Values of all filters of one query together: each is a place in an index to be looked up.
  package var valuesPerQuery = 2000
  /// Values, or words, of one filter.
  package var valuesPerFilter = 1000
  /// Records that one query looks at before it answers with what it has and a marker.
  package var recordsScanned = 10_000
  /// The same where no index has the order and the records are put in order in memory: beyond as
  /// many, each stretch of them is in order by itself.
  package var recordsOrdered = 50_000
  /// Seconds that one look-up, query or feed may read; the time in line counts.
  package var readTime = 20.0
  /// Threads that these reads have beside the pool; one person has half of them at most.
  package var readThreads = 4
  /// Reads that may wait for a thread; a further one is asked to come again.
  package var waitingReads = 1000
  /// The same for one person, or for one site of callers who are not signed in.
  package var waitingReadsPerReader = 100
  /// Records that a filter may leave for them to be put in order in memory; where it leaves more,
  /// the index of the order is walked instead.
  package var recordsSortedInMemory = 1000
  /// Bytes of a record's fields, assets not counted.
  package var recordSize = 1_048_576
  /// Bytes of one file.
  package var assetSize = 50 * 1_048_576
  /// Bytes of any request but an upload: 200 records of full size in base64 would be more, and
  /// nobody sends that.
  package var requestSize = 64 * 1_048_576
  /// The same for requests that name neither a user token nor a server key: reads of a public
  /// database are small.
  package var anonymousRequestSize = 1_048_576
  /// Bytes of a form of a page, or of a call about an account: a few names, a password, a link.
  package var formSize = 64 * 1024
  /// Bytes of an administrator's call: the largest is a schema, about a kilobyte for each type.
  package var administrationSize = 4 * 1_048_576
  /// Records that one record's deletion may take along directly.
  package var deleteSelfReferrers = 750
  /// Records that the deletions of one request may take along in all, through references to
  /// references: they are read in the lane of the writers, which others wait for.
  package var recordsPerCascade = 10_000
  /// Records above one another, from a record up to the one without a parent, and levels below a
  /// record that comes into a share: each level is read by itself.
  package var parentDepth = 1000
  /// Characters of record and zone names.
  package var nameLength = 255
  /// Living zones of one database.
  package var zonesPerDatabase = 1000
  /// People who take part in one share, beside its owner.
  package var participantsPerShare = 100
  /// People who ask to take part in one share; more are not heard before these are answered.
  package var requestersPerShare = 100
  /// People who may not ask to take part in one share any more.
  package var blockedPerShare = 1000
  /// Records that one request may bring into shares or out of them, beyond those it saves: their
  /// names are held in memory.
  package var recordsPerShareChange = 200_000
  /// Seconds that an upload URL lives.
  package var uploadURLLifetime = 15.0 * 60
  /// Uploads that one person may have under way at a time.
  package var openUploads = 32
  /// Bytes of files in a second that one person may upload on average; an upload that has begun ends,
  /// the next one waits.
  package var uploadBytesPerSecond = 16.0 * 1_048_576
  /// Bytes that they may upload at once: a library that is uploaded for the first time.
  package var uploadBurst = 4096.0 * 1_048_576
  /// Seconds that the reply of a batch with a sequence number is kept, after the device's last batch: as long
  /// as a device may be away that did not get it.
  package var replyLifetime = 2.0 * 365 * 24 * 60 * 60
  /// Devices of one user, in one database, whose replies are kept; the longest unused goes first.
  package var sequenceDevices = 64
  /// People whom one user may look up within an hour, by address, number or record name.
  package var peopleLookedUpPerHour = 1000
  /// Containers that one person may sign in to.
  package var containersPerUser = 100
  /// Subscriptions of one user in one database: each may be matched with every save.
  package var subscriptionsPerUser = 500
  /// Bytes of one subscription.
  package var subscriptionSize = 32 * 1024
  /// Seconds that a download URL lives.
  package var downloadURLLifetime = 60.0 * 60
  /// Seconds in which an uploaded file must be saved in a record.
  package var receiptLifetime = 24.0 * 60 * 60
  /// Seconds that a sign-in lives that is not kept; use renews it.
  package var sessionLifetime = 30.0 * 60
  /// Seconds that a sign-in lives that is kept; use renews it.
  package var keptSessionLifetime = 14.0 * 24 * 60 * 60
  /// Seconds that the page of a person's own account stays open.
  package var ownPageLifetime = 15.0 * 60
  /// Seconds after which a sign-in that is not kept ends however much it is used: a copied token must
  /// not live for ever.
  package var sessionAge = 24.0 * 60 * 60
  /// Seconds after which a kept one does.
  package var keptSessionAge = 90.0 * 24 * 60 * 60
  /// Seconds after which a device that does not listen is forgotten.
  package var deviceLifetime = 90.0 * 24 * 60 * 60
  /// Devices of one person in a container's environment; one more forgets the one that has not
  /// listened for longest.
  package var devicesPerUser = 50
  /// Seconds after which a long poll answers `null`.
  package var longPollTimeout = 45.0
  /// Seconds that traces of deleted records are kept; older change tokens have expired.
  package var traceLifetime = 90.0 * 24 * 60 * 60
  /// Seconds that commit events are kept for other processes.
  package var eventLifetime = 60.0 * 60
  /// Seconds between two looks for the commits of other processes.
  package var newsInterval = 2.0

  // Passwords
  /// Sign-ins with a wrong password before a name rests for one network: an IPv4 address or 64 bits
  /// of an IPv6 address.
  package var failedSignIns = 10
  /// The same for one network over all names: a family or a school shares an address.
  package var failedSignInsPerNetwork = 30
  /// The same for one site over all names: 48 bits of an IPv6 address, which one customer of a
  /// provider may have whole.
  package var failedSignInsPerSite = 120
  /// The same for one name from one site.
  ///
  /// Networks that the name was signed in from are counted in neither of the two: in some places a
  /// site is many customers.
  package var failedSignInsOfNamePerSite = 30
  /// The same for one name over all networks that it was not signed in from: NIST SP 800-63B allows
  /// at most 100.
  package var failedSignInsPerAccount = 100
  /// Seconds that a name or a network rests.
  package var signInPause = 15.0 * 60
  /// Seconds that a name rests for all networks that it was not signed in from, and in which its
  /// failures are counted: OWASP's ASVS allows 100 an hour.
  package var accountPause = 60.0 * 60
  /// Wrong codes of an account's second factor, after right passwords and from all networks together,
  /// before no code is taken for a while.
  package var failedCodes = 10
  /// Seconds of that: with three of a million codes good at a time, who has the password finds one
  /// within years.
  package var codePause = 60.0 * 60
  /// Seconds that a network stays known to a name after a sign-in.
  package var knownNetworkLifetime = 90.0 * 24 * 60 * 60
  /// The cost of scrypt for a password, a power of two: 32,768 takes 32 MB.
  package var passwordRounds = 32_768
  /// How often scrypt repeats its work, one after the other: with 32,768 rounds three times are what
  /// OWASP asks for, in a quarter of the memory of its other choice (131,072 rounds, once).
  package var passwordRepetitions = 3
  /// Characters that a new password has at least and at most; those that are guessed first are
  /// refused.
  package var passwordRule = PasswordRule()
  /// Sign-ins that may wait for the one lane that hashes passwords: ten seconds' work.
  package var waitingHashes = 40
  /// The same for one network, so that none takes the whole queue.
  package var waitingHashesPerNetwork = 8
  /// The same for one site, 48 bits of an IPv6 address.
  package var waitingHashesPerSite = 12
  /// Of all of them, places that are kept for names that were signed in from the sender's network
  /// before, and for calls of the server's own process.
  package var waitingHashesOfKnown = 10
  /// Of the kept places, how many one network may take.
  package var waitingHashesPerKnownNetwork = 3
  /// Seconds that the date of a signed request may be off, either way.
  package var signatureWindow = 600.0
  /// Seconds that a device may stay away before it must sign in again; each use starts them anew.
  package var refreshTokenLifetime = 180.0 * 24 * 60 * 60
  /// Seconds that the link of an invitation works.
  package var invitationLifetime = 7.0 * 24 * 60 * 60
  /// Seconds that the link of a password reset works.
  package var passwordResetLifetime = 60.0 * 60
  /// Seconds that the link works which confirms an e-mail address.
  package var addressVerificationLifetime = 24.0 * 60 * 60
  /// Seconds that the link to a person's own data works.
  package var exportLinkLifetime = 15.0 * 60
  /// Downloads of people's own data at a time; each holds a page of records in memory.
  ///
  /// An account has one, and a site (an IPv4 address, or 48 bits of an IPv6 address) half of them.
  package var runningExports = 8
  /// Bytes in a second that a client takes of such a download; one that takes fewer loses its place
  /// where another account asks for one.
  package var exportRate = 16 * 1024
  /// Mails that may wait to be sent, and as many requests for one before they are looked up.
  package var waitingMails = 500
  /// Of these, notices of changes; each of the two classes fills its own places alone.
  package var waitingNotices = 100
  /// Seconds after which a mail is given up that no mail server takes.
  package var mailLifetime = 24.0 * 60 * 60
  /// Mails that people may ask for to one address in an hour, links that confirm it and links to a new
  /// password each, and links that one account may ask for.
  package var mailsPerAddress = 5
  /// The same over all addresses, of each of the two kinds.
  package var mailsPerHour = 1000
  /// Seconds between an account's deletion and the removal of what it owns.
  package var purgeDelay = 30.0 * 24 * 60 * 60
  /// Seconds that the audit log goes back.
  package var auditLifetime = 400.0 * 24 * 60 * 60
  /// The same for sign-ins that failed, which strangers cause.
  package var auditFailureLifetime = 30.0 * 24 * 60 * 60
  /// Sign-ins that failed within an hour and have a line, of accounts and of unknown names each.
  package var auditedFailuresPerHour = 1000
  /// Of these, lines of one account, and lines of one network; the first one of an account in an hour
  /// is there in any case.
  package var auditedFailuresPerShare = 100
  /// Requests that one user, or one address that is not signed in, may send in a second on average;
  /// none: as many as they like.
  package var requestsPerSecond: Double?
  /// Requests that they may send at once.
  package var requestBurst = 200.0
  /// How many times as much the networks of one site may send together: 48 bits of an IPv6 address,
  /// which one customer of a provider may have whole.
  package var networksPerSite = 8.0
  /// Bytes that one user's databases may hold in a container, assets included; none: no
  /// limit.
  ///
  /// Each row counts 100 or 200 bytes beside its content, and each file 4,096, so that
  /// nothing is free by being empty.
  package var userQuota: Int64?
  /// Bytes that a container's public database may hold; none: no limit.
  package var publicQuota: Int64?
  /// Bytes of a container's public database that one person may fill with records that they make, and
  /// the same in files that they upload to it, which come back over `assetGrace`; none: no limit.
  package var publicUserQuota: Int64?
  /// Seconds that the file of an asset stays after the last record that used it: longer than any URL
  /// lives and any backup is kept.
  package var assetGrace = 30.0 * 24 * 60 * 60

  package init() {}
}
