import Foundation
import Logging

extension EmbeddedServer {
  /// Where an embedded server listens, and where its data is.
  ///
  /// The default is a server in memory on a free port of the loopback interface. Its limits are
  /// those of `watershed serve`.
  public struct Configuration: Sendable {
    /// The folder of the data; nil keeps it in memory.
    ///
    /// It has the format of the folder of `watershed serve`: the same folder can be served by
    /// either, one at a time.
    public var dataFolder: URL?
    /// The URL of a PostgreSQL database, `postgresql://…`; nil: SQLite in the data folder.
    ///
    /// Assets and keys are in the data folder all the same.
    public var databaseURL: URL?
    /// The interface to listen on.
    public var host = "127.0.0.1"
    /// The port to listen on; zero takes any free one.
    public var port = 0
    /// The URL under which clients reach the server, if it is behind a proxy; nil: the bound
    /// address.
    public var publicURL: URL?
    /// A certificate chain and its key; nil for plain HTTP.
    public var tls: TLS?
    /// Receives the server's log; only errors are logged by default, to standard error.
    public var logger: Logger

    /// A certificate chain and its private key, as PEM files.
    ///
    /// Files that change are read again without a restart.
    public struct TLS: Sendable {
      /// The path of the chain, the server's certificate first.
      public var certificatePath: String
      /// The path of the private key.
      public var keyPath: String

      /// Creates a pair of paths; the files are read when the server starts.
      public init(certificatePath: String, keyPath: String) {
        self.certificatePath = certificatePath
        self.keyPath = keyPath
      }
    }

    /// Creates a configuration with the defaults, for data in a folder or in memory.
    public init(dataFolder: URL? = nil) {
      self.dataFolder = dataFolder
      logger = Logger(label: "watershed") { StreamLogHandler.standardError(label: $0) }
      logger.logLevel = .error
    }

    var http: CloudKitHTTPServer.Configuration {
      CloudKitHTTPServer.Configuration(
        host: host,
        port: port,
        tls: tls.map {
          CloudKitHTTPServer.TLS(certificatePath: $0.certificatePath, keyPath: $0.keyPath)
        }
      )
    }
  }
}
