// Decodes answers that arrive compressed (RFC 9110 §8.4) despite `Accept-Encoding: identity`: some hosts have only compressed
// files, and some proxies compress everything.
import { pipeline, type Readable, type Transform } from 'node:stream';
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
} from 'node:zlib';

const KNOWN = /^(?:(?:x-)?gzip|deflate|br)$/;
/** Values that are not codings: some servers put the character set there, or the media type. */
const MEANINGLESS = /^(?:|identity|none|binary|[78]bit|(?:us-)?ascii|utf-?8|iso-8859-1|.*[=/].*)$/;
const SHOWN = /^[\w.+, -]{1,60}$/;

interface ContentCoding {
  /** `none`: the body is not encoded. */
  readonly kind: 'none' | 'known' | 'unknown';
  /** The name of the coding, which is safe to show. */
  readonly name: string;
}

/** Read from the header `Content-Encoding`. */
export function readCoding(header: string): ContentCoding {
  const names = header.toLowerCase().split(',').map(trim);
  const name = names.filter((one) => !MEANINGLESS.test(one)).join(', ');
  if (name === '') return { kind: 'none', name };
  if (KNOWN.test(name)) return { kind: 'known', name };
  return { kind: 'unknown', name: SHOWN.test(name) ? name : '(invalid name)' };
}

const trim = (text: string) => text.trim();

/** `first` are the first bytes of the body. */
function createDecoder(name: string, first: Uint8Array): Transform {
  if (name === 'br') return createBrotliDecompress(BROTLI_OPTIONS);
  if (name !== 'deflate') return createGunzip(ZLIB_OPTIONS);
  // RFC 9110 §8.4.1.2: some servers send deflate without the zlib wrapper.
  const isZlib = ((first[0] ?? 0) & 0x0f) === ZLIB_METHOD;
  return isZlib ? createInflate(ZLIB_OPTIONS) : createInflateRaw(ZLIB_OPTIONS);
}

/** RFC 1950 §2.2. */
const ZLIB_METHOD = 8;
/** Passes on everything that can be decoded immediately, even from a body that ends too early. */
const ZLIB_OPTIONS = { flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH };
const BROTLI_OPTIONS = {
  flush: constants.BROTLI_OPERATION_FLUSH,
  finishFlush: constants.BROTLI_OPERATION_FLUSH,
};

/** Decodes a body, whose size the reader limits. A body in an unknown coding stays as received. */
export async function* decodeBody(body: Readable, header: string): AsyncGenerator<Uint8Array> {
  const coding = readCoding(header);
  if (coding.kind !== 'known') return yield* body;
  const first = await readFirst(body);
  // Even an empty body may be declared compressed.
  if (first === undefined) return;
  const decoder = createDecoder(coding.name, first);
  decoder.write(first);
  // Errors reach the reader.
  yield* pipeline(body, decoder, () => {});
}

async function readFirst(body: Readable): Promise<Uint8Array | undefined> {
  for await (const chunk of body.iterator({ destroyOnReturn: false })) return chunk;
  return undefined;
}

/** The window size as a power of two, from the first byte (RFC 7932 §9.1). For the other codings, the window is 32 KiB. */
function readBrotliWindow(first: number) {
  const [upper, lower] = [(first >> 1) & 7, (first >> 4) & 7];
  if (first % 2 === 0) return 16;
  if (upper > 0) return 17 + upper;
  return lower > 1 ? 8 + lower : 17;
}

/** Receives the decoded bytes of one body. */
export interface DecodedReader {
  onDecoded(bytes: Buffer): void;
  /** `problem` is a clause. No other call follows. */
  onUndecodable(problem: string): void;
  /** The decoder is waiting for more input, and holds memory in the meantime. */
  onWaiting(): void;
  /** Called when enough data is waiting to be decoded (back-pressure), until `letSourceGoOn` is called. */
  holdSource(): void;
  letSourceGoOn(): void;
}

/** Decodes a body as its bytes arrive, keeping no more than a few pieces of it. */
export class BodyDecoder {
  private readonly name: string;
  private readonly maxBytes: number;
  private readonly reader: DecodedReader;
  private decoder: Transform | undefined = undefined;
  /** Bytes received since the last decoded byte. In some codings, endless input may decode to nothing. */
  private fruitless = 0;
  private isPaused = false;
  private hasEnded = false;
  private hasAll = false;
  private windowBytes = 0;
  /** The memory that the decoder may hold while it waits for more input: as much as the first byte declares. */
  keptBytes = 0;

  /** `maxBytes` limits the encoded bytes that decode to nothing; the reader limits the decoded bytes. */
  constructor(name: string, maxBytes: number, reader: DecodedReader) {
    this.name = name;
    this.maxBytes = maxBytes;
    this.reader = reader;
  }

  add(bytes: Buffer): void {
    this.fruitless += bytes.length;
    if (this.fruitless > this.maxBytes) {
      this.reader.onUndecodable(`more than ${this.maxBytes} bytes of it come to nothing`);
      return;
    }
    // Anything after the end of the compressed data is dropped.
    if (this.hasEnded) return;
    this.decoder ??= this.open(bytes);
    if (!this.decoder.write(bytes, () => this.noteDecoded())) this.reader.holdSource();
  }

  private noteDecoded(): void {
    if (this.hasAll || this.windowBytes === 0) return;
    this.keptBytes = this.windowBytes;
    this.reader.onWaiting();
  }

  /** Called when no more bytes follow; `task` runs after all have been decoded. */
  finish(task: () => void): void {
    this.hasAll = true;
    if (this.decoder === undefined || this.hasEnded) task();
    else this.decoder.once('end', task).end();
  }

  pause(): void {
    this.isPaused = true;
    this.decoder?.pause();
  }

  resume(): void {
    this.isPaused = false;
    this.decoder?.resume();
  }

  /** Stops decoding; the reader is not called any more. */
  stop(): void {
    this.decoder?.removeAllListeners('data').removeAllListeners('end').destroy();
  }

  private open(first: Buffer): Transform {
    const { reader } = this;
    if (this.name === 'br') this.windowBytes = 1 << readBrotliWindow(first[0] ?? 0);
    const decoder = createDecoder(this.name, first)
      .on('data', (bytes: Buffer) => {
        this.fruitless = 0;
        reader.onDecoded(bytes);
      })
      .on('drain', () => reader.letSourceGoOn())
      .on('end', () => {
        this.hasEnded = true;
        reader.letSourceGoOn();
      })
      .on('error', () =>
        reader.onUndecodable(`its Content-Encoding is ${this.name}, but its bytes are not`),
      );
    if (this.isPaused) decoder.pause();
    return decoder;
  }
}
