// RFC 9110 §8.4, §12.5.3: pages in the coding that the caller takes. Each is compressed once, when it is first asked
// for, off the event loop, and kept.
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { Reply } from '../core/message.ts';
import { readWeights } from './accept.ts';

/** A page of the site as its caller gets it. */
export type CompressPage = (page: Reply, acceptEncoding: string | undefined) => Promise<Reply>;

type Compress = (bytes: Uint8Array) => Promise<Uint8Array>;

const brotli = promisify(brotliCompress);

/** The best first. Beyond this quality brotli takes ten times as long for a few percent. */
const CODINGS: readonly (readonly [name: string, compress: Compress])[] = [
  ['br', (bytes) => brotli(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } })],
  ['gzip', promisify<Uint8Array, Uint8Array>(gzip)],
];

/** What is smaller fits into a packet or two as it is. */
const MIN_BYTES = 1024;

export function createCompressPage(): CompressPage {
  /** By what is compressed, which the site keeps for as long as it is served. */
  const kept = new WeakMap<Uint8Array, Map<string, Promise<Uint8Array>>>();

  function compressOnce(bytes: Uint8Array, name: string, compress: Compress) {
    const byCoding = kept.get(bytes) ?? new Map<string, Promise<Uint8Array>>();
    kept.set(bytes, byCoding);
    const compressed = byCoding.get(name) ?? compress(bytes);
    byCoding.set(name, compressed);
    return compressed;
  }

  return async function compressPage(page, acceptEncoding) {
    if (!isCompressible(page)) return page;
    const varied = { ...page, headers: { ...page.headers, Vary: addTo(page.headers?.Vary) } };
    const { body } = page;
    const coding = findCoding(acceptEncoding);
    if (!(body instanceof Uint8Array) || body.byteLength < MIN_BYTES || !coding) return varied;
    const [name, compress] = coding;
    return {
      ...varied,
      headers: { ...varied.headers, 'Content-Encoding': name },
      body: await compressOnce(body, name, compress),
    };
  };
}

/** Text, and the 304 that stands for it, which has no type. */
const isCompressible = ({ headers }: Reply): boolean =>
  /^(text\/|image\/svg)|^$/.test(headers?.['Content-Type'] ?? '');

const addTo = (vary: string | undefined): string =>
  vary === undefined ? 'Accept-Encoding' : `${vary}, Accept-Encoding`;

function findCoding(acceptEncoding: string | undefined) {
  const weights = readWeights(acceptEncoding);
  return CODINGS.find(([name]) => (weights.get(name) ?? 0) > 0);
}
