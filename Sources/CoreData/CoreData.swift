@_exported import CloudKitMirroring
