import NIOCore

/// A request's body on its way from the connection to whoever reads it, a few pieces at a time.
struct UploadStream: Sendable {
  typealias Producer = NIOThrowingAsyncSequenceProducer<
    ByteBuffer, any Error, NIOAsyncSequenceProducerBackPressureStrategies.HighLowWatermark, Demand
  >
  typealias Source = Producer.Source

  /// Tells the connection to read on.
  struct Demand: NIOAsyncSequenceProducerDelegate {
    let readOn: @Sendable () -> Void

    func produceMore() { readOn() }

    /// Nobody reads it any more: what comes is dropped.
    func didTerminate() { readOn() }
  }

  let pieces: Producer

  static func make(readOn: @escaping @Sendable () -> Void) -> (stream: UploadStream, Source) {
    let made = Producer.makeSequence(
      elementType: ByteBuffer.self,
      failureType: (any Error).self,
      backPressureStrategy: .init(lowWatermark: 2, highWatermark: 8),
      finishOnDeinit: true,
      delegate: Demand(readOn: readOn)
    )
    return (UploadStream(pieces: made.sequence), made.source)
  }
}
