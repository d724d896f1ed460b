// Sets options of V8's garbage collector for a process that serves calls. A separate file without imports: its test needs a young
// generation that has not grown yet.
import { setFlagsFromString } from 'node:v8';

/**
 * Keeps the allocations of calls out of the old generation, whose collection pauses all calls (docs/decisions/0022):
 *
 * - While idle, V8 shrinks the young generation to 1 MB, and doubles it step by step under load. Until it reaches its full size
 *   (16 MB on Node.js 20, more on newer versions), calls in flight survive its collections and are promoted. With this option it
 *   grows in one or two steps.
 * - Objects that often survived collections are later allocated directly in the old generation (allocation-site pretenuring).
 *   In every second process, V8 did so for response bodies: each 64 MB of them caused a full collection.
 *
 * V8 reads both options whenever it decides; a version that does not know one warns on stderr and continues. Call this after all
 * modules are loaded: code that Node.js loads later is recompiled, because it was compiled with other options.
 */
export function tuneCollector(): void {
  // Options set by the operator take precedence.
  const isChosen = (name: string) => process.execArgv.some((option) => option.includes(name));
  if (!isChosen('semi-space')) setFlagsFromString('--semi-space-growth-factor=16');
  if (!isChosen('pretenuring')) setFlagsFromString('--no-allocation-site-pretenuring');
}
