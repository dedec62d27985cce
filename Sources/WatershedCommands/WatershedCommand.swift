import ArgumentParser

/// `watershed`: the whole command line.
public struct WatershedCommand: AsyncParsableCommand {
  /// The commands, in the order in which users need them.
  public static let configuration = CommandConfiguration(
    commandName: "watershed",
    abstract: "Core Data with CloudKit, with a cloud of your own.",
    discussion: """
      Start with `watershed demo` to watch two devices sync, or with `watershed serve` to run a \
      server that your app can use.
      """,
    version: "0.1.0",
    subcommands: [
      DemoCommand.self, ServeCommand.self, ExecCommand.self, NewCommand.self, AdoptCommand.self,
      ModelCommand.self, RecoveryCommand.self, StorageCommand.self,
      ServerCommand.self, ServerCommand.Status.self, UsageCommand.self, LoginCommand.self,
      UsersCommand.self, SessionsCommand.self, ContainersCommand.self,
      TokensCommand.self,
      KeysCommand.self, SchemaCommand.self,
      RecordsCommand.self, ZonesCommand.self, ChangesCommand.self, SubscriptionsCommand.self,
      SharesCommand.self, AssetsCommand.self, BackupCommand.self, ConfigCommand.self,
      MailCommand.self,
      DoctorCommand.self, LogsCommand.self, AuditCommand.self, ExplainCommand.self,
      CktoolCommand.self,
      SimulateCommand.self,
    ]
  )

  /// Creates the command; the parser sets its properties.
  public init() {}
}
