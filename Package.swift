// swift-tools-version: 6.2
import PackageDescription

/// Every target of ours is compiled in the Swift 6 language mode with warnings as errors.
let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .treatAllWarnings(as: .error),
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
    .executable(name: "watershed", targets: ["watershed"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
    .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
  ],
  targets: [
    // The system's own libraries.
    .systemLibrary(
      name: "CSQLite",
      pkgConfig: "sqlite3",
      providers: [.apt(["libsqlite3-dev"])]
    ),
    .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),

    // The modules, lowest first. Arrows point down, always.
    .target(name: "Effects", swiftSettings: strict),
    .target(name: "WatershedSQLite", dependencies: ["CSQLite"], swiftSettings: strict),
    .target(
      name: "OpenCoreData",
      dependencies: [
        "CZlib", "Effects", "WatershedSQLite",
        .product(name: "Crypto", package: "swift-crypto"),
      ],
      swiftSettings: strict
    ),
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
        "CloudKitWebServices", "Effects", "WatershedSQLite",
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: strict
    ),
    .target(
      name: "CloudKitServerHTTP",
      dependencies: [
        "CloudKitServer", "CloudKitWebServices",
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "HummingbirdCore", package: "hummingbird"),
        .product(name: "HummingbirdTLS", package: "hummingbird"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOFoundationCompat", package: "swift-nio"),
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
      name: "WatershedCommands",
      dependencies: [
        "CloudKitMirroring", "CloudKitServer", "CloudKitServerHTTP", "CloudKitTesting",
        "CloudKitWebServices", "Effects", "OpenCloudKit", "OpenCoreData",
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
      dependencies: ["CloudKitMirroring", "OpenCoreData"],
      swiftSettings: strict
    ),
    .target(name: "CloudKit", dependencies: ["OpenCloudKit"], swiftSettings: strict),

    .testTarget(name: "EffectsTests", dependencies: ["Effects"], swiftSettings: strict),
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
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOFoundationCompat", package: "swift-nio"),
      ],
      swiftSettings: strict
    ),
    .testTarget(
      name: "OpenCoreDataTests",
      dependencies: ["CZlib", "Effects", "OpenCoreData", "WatershedSQLite"],
      swiftSettings: strict
    ),
    .testTarget(
      name: "CloudKitWebServicesTests",
      dependencies: ["CloudKitWebServices"],
      swiftSettings: strict
    ),
    .testTarget(
      name: "CloudKitServerTests",
      dependencies: ["CloudKitServer", "CloudKitWebServices", "Effects", "WatershedSQLite"],
      swiftSettings: strict
    ),
    .testTarget(
      name: "OpenCloudKitTests",
      dependencies: ["CloudKitServer", "CloudKitWebServices", "Effects", "OpenCloudKit"],
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
      name: "SyncByHandTests",
      dependencies: ["CloudKit", "CloudKitServer", "CoreData", "OpenCloudKit"],
      resources: [.copy("MustC.xcdatamodeld")],
      swiftSettings: strict
    ),
    .testTarget(
      name: "WatershedCommandsTests",
      dependencies: [
        "watershed",
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

// Benchmarks are built by `make bench` alone: no user and no test waits for them.
if Context.environment["WATERSHED_BENCHMARKS"] != nil {
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
    .executableTarget(
      name: "benchmarks",
      dependencies: [
        "LocalWorkload", "WatershedCommands",
        .product(name: "Logging", package: "swift-log"),
      ],
      path: "Benchmarks/Sources/benchmarks",
      swiftSettings: strict
    ),
  ]
}
