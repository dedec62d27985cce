import ArgumentParser
import Foundation

/// `watershed explain CODE`: the meaning and remedy of an error, without a server.
struct ExplainCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "explain",
    abstract: "Explain an error code, and what to do about it.",
    discussion: """
      Exit codes: 0 success, 1 the operation failed, 2 it ran and found a problem, 64 usage, 69 the \
      server cannot be reached, 70 an internal error, 74 the output cannot be written, 75 try \
      again later, 77 not authorised, 130 interrupted by Ctrl-C, 141 the reader closed the output.
      """
  )

  @OptionGroup var output: OutputOptions
  @Argument(
    help: ArgumentHelp(
      """
      The code of a reply or command, or the number or name of an error that an app prints, such as \
      14, serverRecordChanged or 134060; without it all are listed.
      """
    )
  ) var code: String?

  private struct Explanation: Encodable {
    var code: String
    /// The number of an app's error; nil for a code of the server.
    var number: Int?
    var meaning: String
    var remedy: String

    var title: String { number.map { "\(code) (\($0))" } ?? code }
  }

  func run() async throws {
    let all =
      Self.texts.map { Explanation(code: $0.code, meaning: $0.meaning, remedy: $0.remedy) }
      + AppError.all.map(Self.explanation)
    guard let code else {
      try output.write(
        "codes",
        all,
        columns: all.map { [$0.title, $0.meaning] },
        titles: ["code", "meaning"]
      )
      return
    }
    try await perform("there is no explanation") {
      let ofApp = AppError.find(code).map(Self.explanation)
      guard let found = all.first(where: { $0.code == code.uppercased() }) ?? ofApp else {
        throw CommandFailure(
          "UNKNOWN_CODE",
          what: "there is no explanation",
          why: "no error has the code \(code)",
          next: "watershed explain"
        )
      }
      try output.write(found, text: "\(found.title): \(found.meaning)\n\(found.remedy)")
    }
  }

  private static func explanation(_ error: AppError) -> Explanation {
    Explanation(
      code: error.name,
      number: error.number,
      meaning: error.meaning,
      remedy: error.remedy
    )
  }

  /// Each code with its meaning and remedy; `Documentation/Operating/Troubleshooting.md` is
  /// generated from them (`make handbook`).
  static let texts: [(code: String, meaning: String, remedy: String)] = [
    (
      "ACCESS_DENIED", "The type's grants, the share or the zone do not allow this.",
      "Check the type's GRANT lines: watershed schema export."
    ),
    (
      "ATOMIC_ERROR", "Another item of the same atomic batch failed, so this one was not stored.",
      "Correct the item that has an error of its own, and send the batch again."
    ),
    (
      "AUTHENTICATION_FAILED",
      "The API token, the signature, the key or the password is not valid.",
      "Check the environment, the container and the clock (ten minutes either way): watershed tokens list, watershed keys list."
    ),
    (
      "AUTHENTICATION_REQUIRED", "The call needs a signed-in user.",
      "Open the reply's redirectURL, or create a token: watershed users sign-in NAME --container-id ID."
    ),
    (
      "BAD_REQUEST", "The request is malformed, against the schema, or lacks an index.",
      "Read the reason. A type or field that production lacks: watershed schema promote. Indexes: watershed schema add-index."
    ),
    (
      "CONFLICT",
      "The record was saved after its change tag was read, or the record to create exists already.",
      "Look the record up, merge, and send it with the new tag; or choose another name."
    ),
    ("EXISTS", "A record of this name exists already.", "Choose another name, or update."),
    (
      "INTERNAL_ERROR", "The server failed to answer the request.",
      "Search the server's log for the request's ID; watershed doctor."
    ),
    ("NOT_FOUND", "There is no such record, type or endpoint.", "Check names and spelling."),
    (
      "NOT_INDEXED", "A query filters or sorts by a field that has no index of the kind it needs.",
      "Add it: watershed schema add-index; or serve with --allow-unindexed-queries in development."
    ),
    (
      "QUOTA_EXCEEDED", "The body, the file or the user's data is over a limit.",
      "Remove data, or raise assetLimit, userQuota or publicQuota in the configuration."
    ),
    (
      "THROTTLED", "Too many requests, or too many wrong passwords.",
      "Wait for retryAfter seconds; rateLimit in the configuration."
    ),
    (
      "TRY_AGAIN_LATER", "The server is stopping or busy.",
      "Send the same again after retryAfter seconds."
    ),
    (
      "VALIDATING_REFERENCE_ERROR",
      "A reference's target is missing, or a deletion would break one.",
      "Save the target first or in the same batch; delete what refers to the record first."
    ),
    ("ZONE_NOT_FOUND", "There is no such zone.", "Create it: watershed zones create NAME."),
    (
      "SERVER_UNREACHABLE", "No server answers at the address.",
      "Start it with watershed serve, or check --server and --data."
    ),
    (
      "NO_DATA", "The data folder is not there.", "Name it with --data, or start a server on it."
    ),
    (
      "INTERRUPTED", "Ctrl-C interrupted the command before it had finished.",
      "Check what was completed, and run it again: every command can be repeated."
    ),
    (
      "BAD_ADDRESS", "The address of a backup names no bucket.",
      "Write s3://BUCKET/PREFIX/NAME; a folder needs no s3://."
    ),
    (
      "BAD_CONFIGURATION", "The configuration file or the environment has mistakes.",
      "watershed config check names each with its line."
    ),
    (
      "COMMAND_NOT_RUN", "watershed exec could not start the command that was named after --.",
      "Name a program that is in PATH and may be run; the exit code is 127 or 126, as in a shell."
    ),
    (
      "FAILED", "The command failed; the line \"why\" names the cause.",
      "Fix the cause and run the command again; watershed doctor checks the server."
    ),
    (
      "MAIL_NOT_SENT",
      "The mail server of the configuration did not accept a mail; the line \"why\" has its answer.",
      "Check smtp.host, smtp.port, smtp.security and the password: watershed mail test ADDRESS."
    ),
    (
      "PLAIN_HTTP",
      "Over http: others on the network path could read and use the administrator's token or password.",
      "Use the server's https: address; on a private network, --allow-plain-http."
    ),
    (
      "NO_API_TOKEN",
      "A user token requires an API token, and only administrators can look one up.",
      "Give --api-token; the server's banner and watershed tokens own have it."
    ),
    (
      "NO_CONTAINER", "The server has no container of this name.",
      "Check the spelling: watershed containers list; or watershed containers create."
    ),
    (
      "SERVER_STOPPED", "The command asks for what a running server has in its memory.",
      "Start the server of the folder, or name another one: --server."
    ),
    ("NO_TOKEN", "No token of this kind is saved.", "Save one: watershed tokens save."),
    (
      "OUTPUT_FAILED",
      "What the command prints cannot be written: the disk is full, or the output closed.",
      "Free space, or write elsewhere; the command itself may have completed."
    ),
    (
      "PRIVATE_KEY", "A private key was given where a public one belongs; it was not sent.",
      "Take the public half: openssl ec -in FILE -pubout."
    ),
    (
      "TOKEN_EXISTS", "A token of this kind is saved already.", "Add --force to replace it."
    ),
    (
      "UNEXPECTED_REPLY", "What answers at the address is not a Watershed server.",
      "Check --server, and the proxy in front of it."
    ),
    ("UNKNOWN_CODE", "No error has this code.", "watershed explain lists all."),
    (
      "UNREADABLE_FILE", "A file that the command was given cannot be read.",
      "Check the path and its permissions."
    ),
    (
      "UNUSABLE_DATA",
      "The data folder or database is in use, cannot be written, or is not this server's.",
      "The line \"why\" says which; watershed doctor checks the server."
    ),
    (
      "UNWRITABLE_FILE", "A file that the command was to write cannot be written.",
      "Check that the folder exists and is writable."
    ),
    (
      "INCOMPLETE", "Records still match after all that were found have been deleted.",
      "Run the command again; watershed records query lists them."
    ),
    (
      "NOT_CONFIRMED", "The command would remove something, and there is no terminal to ask on.",
      "Add --yes."
    ),
  ]
}
