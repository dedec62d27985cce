// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [.swiftLanguageMode(.v6), .treatAllWarnings(as: .error)]

let package = Package(
  name: "watershed-benchmarks",
  dependencies: [.package(name: "watershed", path: "..")],
  targets: [
    .systemLibrary(
      name: "CSQLiteForBenchmarks",
      pkgConfig: "sqlite3",
      providers: [.apt(["libsqlite3-dev"])]
    ),
    .target(name: "RawSQLite", dependencies: ["CSQLiteForBenchmarks"]),
    .target(
      name: "LocalWorkload",
      dependencies: ["RawSQLite", .product(name: "OpenCoreData", package: "watershed")],
      swiftSettings: strict
    ),
    .executableTarget(
      name: "benchmarks",
      dependencies: [
        "LocalWorkload",
        .product(name: "CloudKitMirroring", package: "watershed"),
        .product(name: "CloudKitTesting", package: "watershed"),
      ],
      swiftSettings: strict
    ),
  ]
)
