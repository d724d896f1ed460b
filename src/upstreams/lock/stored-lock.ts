// §22.6: postern.lock where it lies, for a gateway whose operators approve at their page. Features touch no files: the
// command line gives it.
import type { LockFile } from './lock-file.ts';

export interface StoredLock {
  readonly path: string;
  /** As it is now; undefined where nothing is locked. @throws LockFileError for one that cannot be used. */
  read(): LockFile | undefined;
  /** Why it cannot be written, such as `EACCES`; undefined where nothing is known that would keep it from being. */
  findObstacle(): Promise<string | undefined>;
  /**
   * Writes it, whole or not at all, and resolves once the gateway serves by it. False where it was written but could
   * not be loaded: the log says why.
   *
   * @throws Error of the system
   */
  save(file: LockFile): Promise<boolean>;
}
