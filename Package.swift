// swift-tools-version: 6.2
import CompilerPluginSupport
import PackageDescription

/// Every target of ours is compiled in the Swift 6 language mode with warnings as errors.
let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .treatAllWarnings(as: .error),
  .enableUpcomingFeature("ExistentialAny"),
]

let package = Package(
  name: "watershed",
  products: [
    .library(name: "OpenCoreData", targets: ["OpenCoreData"]),
    .library(name: "OpenCloudKit", targets: ["OpenCloudKit"]),
    .library(name: "CloudKitMirroring", targets: ["CloudKitMirroring"]),
    .library(name: "CloudKitServer", targets: ["CloudKitServer", "CloudKitServerHTTP"]),
    .library(name: "CloudKitTesting", targets: ["CloudKitTesting"]),
    .library(name: "CoreData", targets: ["CoreData"]),
    .library(name: "CloudKit", targets: ["CloudKit"]),
    .library(name: "ManagedMacros", targets: ["ManagedMacros"]),
    .library(name: "AppleShims", targets: ["AppleShims"]),
    .plugin(name: "CoreDataModels", targets: ["CoreDataModels"]),
    .executable(name: "watershed", targets: ["watershed"]),
  ],
  traits: [
    .trait(
      name: "CloudKit",
      description: "CoreData brings mirroring with CloudKit, and CloudKit predicates of text."
    ),
    .trait(name: "Macros", description: "OpenCoreData brings @ManagedObject and @Managed."),
    .default(enabledTraits: ["CloudKit"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
    .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    .package(url: "https://github.com/swiftlang/swift-syntax", "600.0.1"..<"604.0.0"),
    .package(url: "https://github.com/vapor/jwt-kit", from: "5.7.1"),
  ],
  targets: [
    // The system's own libraries.
    .systemLibrary(
      name: "CSQLite",
      pkgConfig: "sqlite3",
      providers: [.apt(["libsqlite3-dev"])]
    ),
    .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
    // Needs no library: the Swift runtime is always linked.
    .systemLibrary(name: "CSwiftRuntime"),

    // The modules, lowest first. Arrows point down, always.
    .target(name: "Effects", swiftSettings: strict),
    .target(name: "WatershedSQLite", dependencies: ["CSQLite"], swiftSettings: strict),
    .target(name: "WatershedPostgreSQL", swiftSettings: strict),
    .target(
      name: "OpenCoreData",
      dependencies: [
        "CSwiftRuntime", "CZlib", "Effects", "WatershedSQLite",
        .target(name: "ManagedMacros", condition: .when(traits: ["Macros"])),
      ],
      swiftSettings: strict
    ),

    // Classes from models, and macros for classes. Only what is used of these is built.
    .target(
      name: "ModelGenerator",
      dependencies: [
        "OpenCoreData",
        .product(name: "SwiftParser", package: "swift-syntax"),
        .product(name: "SwiftSyntax", package: "swift-syntax"),
      ],
      swiftSettings: strict
    ),
    .executableTarget(
      name: "model-tool",
      dependencies: ["Effects", "ModelGenerator", "OpenCoreData"],
      path: "Sources/ModelTool",
      swiftSettings: strict
    ),
    .plugin(
      name: "CoreDataModels",
      capability: .buildTool(),
      dependencies: ["model-tool"]
    ),
    .macro(
      name: "ManagedMacroPlugin",
      dependencies: [
        .product(name: "SwiftCompilerPlugin", package: "swift-syntax"),
        .product(name: "SwiftSyntax", package: "swift-syntax"),
        .product(name: "SwiftSyntaxMacros", package: "swift-syntax"),
      ],
      swiftSettings: strict
    ),
    .target(name: "ManagedMacros", dependencies: ["ManagedMacroPlugin"], swiftSettings: strict),
    // Names of Apple's that Linux lacks; no module of ours imports it.
    .target(name: "AppleShims", swiftSettings: strict),
    .target(
      name: "CloudKitWebServices",
      dependencies: [.product(name: "Crypto", package: "swift-crypto")],
      swiftSettings: strict
    ),
    .target(
      name: "OpenCloudKit",
      dependencies: [
        "CloudKitWebServices", "Effects",
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOFoundationCompat", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      swiftSettings: strict
    ),
    .target(
      name: "CloudKitMirroring",
      dependencies: [
        "CloudKitWebServices", "Effects", "OpenCloudKit", "OpenCoreData", "WatershedSQLite",
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: strict
    ),
    .target(
      name: "CloudKitServer",
      dependencies: [
        "CloudKitWebServices", "Effects", "WatershedPostgreSQL", "WatershedSQLite",
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "CryptoExtras", package: "swift-crypto"),
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: strict
    ),
    .target(
      name: "CloudKitServerHTTP",
      dependencies: [
        "CloudKitServer", "CloudKitWebServices",
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "HummingbirdCore", package: "hummingbird"),
        .product(name: "HummingbirdTLS", package: "hummingbird"),
        .product(name: "JWTKit", package: "jwt-kit"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOFoundationCompat", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
      ],
      swiftSettings: strict
    ),
    .target(
      name: "CloudKitTesting",
      dependencies: [
        "CloudKitMirroring", "CloudKitServer", "CloudKitWebServices", "Effects", "OpenCloudKit",
        "OpenCoreData",
      ],
      swiftSettings: strict
    ),
    .target(
      name: "Simulation",
      dependencies: [
        "CloudKitMirroring", "CloudKitServer", "CloudKitWebServices", "Effects", "OpenCloudKit",
        "OpenCoreData",
      ],
      swiftSettings: strict
    ),
    .target(
      name: "WatershedCommands",
      dependencies: [
        "CloudKitMirroring", "CloudKitServer", "CloudKitServerHTTP", "CloudKitTesting",
        "CloudKitWebServices", "Effects", "ModelGenerator", "OpenCloudKit", "OpenCoreData",
        "Simulation",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
      ],
      swiftSettings: strict
    ),
    .executableTarget(
      name: "watershed",
      dependencies: ["WatershedCommands"],
      swiftSettings: strict
    ),

    // Apple's module names, so that code that says `import CoreData` compiles unchanged.
    .target(
      name: "CoreData",
      dependencies: [
        "OpenCoreData",
        .target(name: "CloudKitMirroring", condition: .when(traits: ["CloudKit"])),
      ],
      swiftSettings: strict
    ),
    .target(
      name: "CloudKit",
      dependencies: [
        "OpenCloudKit",
        .target(name: "CloudKitMirroring", condition: .when(traits: ["CloudKit"])),
      ],
      swiftSettings: strict
    ),

    .testTarget(name: "EffectsTests", dependencies: ["Effects"], swiftSettings: strict),
    .testTarget(name: "AppleShimsTests", dependencies: ["AppleShims"], swiftSettings: strict),
    .testTarget(
      name: "WatershedSQLiteTests",
      dependencies: ["WatershedSQLite"],
      swiftSettings: strict
    ),
    .testTarget(
      name: "CloudKitServerHTTPTests",
      dependencies: [
        "CloudKitServer", "CloudKitServerHTTP", "CloudKitWebServices", "OpenCloudKit",
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "CryptoExtras", package: "swift-crypto"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOFoundationCompat", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      swiftSettings: strict
    ),
    // Another process on a store's file, for the tests of OpenCoreData.
    .executableTarget(
      name: "StoreProcess",
      dependencies: ["Effects", "OpenCoreData", "SystemCallFaults", "WatershedSQLite"],
      path: "Tests/StoreProcess",
      swiftSettings: strict
    ),
    // System calls that fail, for the programs of tests.
    .target(name: "SystemCallFaults", path: "Tests/SystemCallFaults"),
    .testTarget(
      name: "OpenCoreDataTests",
      dependencies: ["CZlib", "Effects", "OpenCoreData", "StoreProcess", "WatershedSQLite"],
      swiftSettings: strict
    ),
    .testTarget(
      name: "ModelGeneratorTests",
      dependencies: ["ModelGenerator", "OpenCoreData"],
      swiftSettings: strict
    ),
    .testTarget(
      name: "ManagedMacrosTests",
      dependencies: [
        "ManagedMacroPlugin", "ManagedMacros", "OpenCoreData",
        .product(name: "SwiftParser", package: "swift-syntax"),
        .product(name: "SwiftSyntaxMacroExpansion", package: "swift-syntax"),
      ],
      swiftSettings: strict
    ),
    .testTarget(
      name: "CloudKitWebServicesTests",
      dependencies: ["CloudKitWebServices"],
      swiftSettings: strict
    ),
    // A PostgreSQL of their own for tests and benchmarks.
    .target(name: "PostgreSQLServer", path: "Tests/PostgreSQLServer", swiftSettings: strict),
    .testTarget(
      name: "WatershedPostgreSQLTests",
      dependencies: ["PostgreSQLServer", "WatershedPostgreSQL"],
      swiftSettings: strict
    ),
    // Another server on a shared database, for the tests of several.
    .executableTarget(
      name: "ServerProcess",
      dependencies: ["CloudKitServer", "CloudKitWebServices"],
      path: "Tests/ServerProcess",
      swiftSettings: strict
    ),
    .testTarget(
      name: "CloudKitServerTests",
      dependencies: [
        "CloudKitServer", "CloudKitWebServices", "Effects", "PostgreSQLServer", "ServerProcess",
        "WatershedPostgreSQL", "WatershedSQLite",
        .product(name: "Crypto", package: "swift-crypto"),
      ],
      swiftSettings: strict
    ),
    .testTarget(
      name: "OpenCloudKitTests",
      dependencies: [
        "CloudKitServer", "CloudKitWebServices", "Effects", "OpenCloudKit",
        .product(name: "Crypto", package: "swift-crypto"),
      ],
      swiftSettings: strict
    ),
    .testTarget(
      name: "CloudKitMirroringTests",
      dependencies: [
        "CloudKitMirroring", "CloudKitServer", "CloudKitTesting", "CloudKitWebServices", "Effects",
        "OpenCloudKit", "OpenCoreData", "WatershedSQLite",
      ],
      swiftSettings: strict
    ),
    .testTarget(
      name: "SimulationTests",
      dependencies: ["Effects", "Simulation"],
      swiftSettings: strict
    ),
    .testTarget(
      name: "SyncByHandTests",
      dependencies: ["CloudKit", "CloudKitServer", "CoreData", "OpenCloudKit"],
      resources: [.copy("MustC.xcdatamodeld")],
      swiftSettings: strict
    ),
    .testTarget(
      name: "WatershedCommandsTests",
      dependencies: [
        "CloudKitMirroring", "WatershedCommands", "WatershedSQLite", "watershed",
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
        .product(name: "NIOCore", package: "swift-nio"),
      ],
      swiftSettings: strict
    ),
    // A device in a process of its own, for the tests that kill it.
    .executableTarget(
      name: "DeviceProcess",
      dependencies: [
        "CloudKitMirroring", "Effects", "OpenCloudKit", "OpenCoreData", "WatershedCommands",
      ],
      path: "Tests/DeviceProcess",
      swiftSettings: strict
    ),
    .testTarget(
      name: "CrashTests",
      dependencies: ["CloudKitServer", "DeviceProcess", "Effects", "watershed"],
      swiftSettings: strict
    ),
  ]
)

// A model library, an app on it, and the same in other language modes. They use the build plugin,
// whose tool every command of SwiftPM builds first; demo and benchmarks do without.
if Context.environment["WATERSHED_WITHOUT_FIXTURES"] == nil {
  package.targets += [
    .target(
      name: "BlogModel",
      dependencies: ["OpenCoreData"],
      path: "Tests/Fixtures/BlogModel",
      swiftSettings: strict,
      plugins: ["CoreDataModels"]
    ),
    .target(
      name: "MainActorModel",
      dependencies: ["OpenCoreData"],
      path: "Tests/Fixtures/MainActorModel",
      swiftSettings: strict + [.defaultIsolation(MainActor.self)],
      plugins: ["CoreDataModels"]
    ),
    .target(
      name: "Swift5Model",
      dependencies: ["OpenCoreData"],
      path: "Tests/Fixtures/Swift5Model",
      swiftSettings: [.swiftLanguageMode(.v5), .treatAllWarnings(as: .error)],
      plugins: ["CoreDataModels"]
    ),
    .executableTarget(
      name: "blog-check",
      dependencies: ["BlogModel", "MainActorModel", "OpenCoreData"],
      path: "Tests/Fixtures/BlogCheck",
      swiftSettings: strict
    ),
    .testTarget(
      name: "ManagedClassesTests",
      dependencies: ["BlogModel", "MainActorModel", "OpenCoreData", "Swift5Model", "blog-check"],
      swiftSettings: strict
    ),
    // The package that `watershed new` writes.
    .target(
      name: "StarterStore",
      dependencies: ["CloudKit", "CoreData"],
      path: "Examples/Starter/Sources/StarterStore",
      plugins: ["CoreDataModels"]
    ),
    .executableTarget(
      name: "Starter",
      dependencies: ["StarterStore"],
      path: "Examples/Starter/Sources/Starter"
    ),
    .testTarget(
      name: "StarterTests",
      dependencies: ["CloudKitTesting", "StarterStore"],
      path: "Examples/Starter/Tests/StarterTests"
    ),
    // The package that `watershed new --kind server` writes.
    .target(
      name: "StarterServerAPI",
      dependencies: ["CoreData", .product(name: "Hummingbird", package: "hummingbird")],
      path: "Examples/StarterServer/Sources/StarterServerAPI",
      plugins: ["CoreDataModels"]
    ),
    .executableTarget(
      name: "StarterServer",
      dependencies: ["StarterServerAPI"],
      path: "Examples/StarterServer/Sources/StarterServer"
    ),
    .testTarget(
      name: "StarterServerTests",
      dependencies: [
        "StarterServerAPI", .product(name: "HummingbirdTesting", package: "hummingbird"),
      ],
      path: "Examples/StarterServer/Tests/StarterServerTests"
    ),
    // The examples of the documentation, compiled and run; scripts/examples compares them with the pages.
    .testTarget(
      name: "DocumentationExamples",
      dependencies: [
        "AppleShims", "CloudKit", "CloudKitServerHTTP", "CloudKitTesting", "CoreData",
        "ManagedMacros",
      ],
      swiftSettings: strict,
      plugins: ["CoreDataModels"]
    ),
  ]
}

// Benchmarks are built by `make bench` alone: no user and no test waits for them.
if Context.environment["WATERSHED_BENCHMARKS"] != nil {
  package.dependencies.append(
    .package(url: "https://github.com/groue/GRDB.swift", exact: "7.10.0")
  )
  package.targets += [
    .target(
      name: "RawSQLite",
      dependencies: ["CSQLite"],
      path: "Benchmarks/Sources/RawSQLite"
    ),
    .target(
      name: "LocalWorkload",
      dependencies: ["OpenCoreData", "RawSQLite"],
      path: "Benchmarks/Sources/LocalWorkload",
      swiftSettings: strict
    ),
    .target(
      name: "GRDBWorkload",
      dependencies: ["LocalWorkload", .product(name: "GRDB", package: "GRDB.swift")],
      path: "Benchmarks/Sources/GRDBWorkload",
      swiftSettings: strict
    ),
    .executableTarget(
      name: "benchmarks",
      dependencies: [
        "GRDBWorkload", "LocalWorkload", "PostgreSQLServer", "WatershedCommands",
        "WatershedPostgreSQL", "WatershedSQLite",
        .product(name: "Logging", package: "swift-log"),
      ],
      path: "Benchmarks/Sources/benchmarks",
      swiftSettings: strict
    ),
  ]
}
