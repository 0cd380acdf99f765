export interface ServerOptions {
  /** Service to emulate. Default: TALLY_MODE, or "keyspaces". */
  mode?: "keyspaces" | "cassandra";
  /** Further settings of tallyd, such as ["--limits", "enforce"]. */
  flags?: string[];
  /** Folder for rows; without it they are in memory. */
  dataDir?: string;
  /** Another tallyd than the package's. */
  program?: string;
  /** Milliseconds to start and to stop. Default: 60000. */
  timeout?: number;
}

export interface Server {
  readonly host: string;
  readonly port: number;
  /** HOST:PORT of CQL. */
  readonly address: string;
  /** HOST:PORT of the live page, unless flags close it. */
  readonly admin?: string;
  /** HOST:PORT of the AWS API, unless flags close it. */
  readonly api?: string;
  readonly pid: number;
  /** The last lines of the server's log. */
  readonly log: string;
  /** Stops the server. Resolves to its exit status, or to the name of the signal that ended it. */
  stop(): Promise<number | string>;
}

/** Starts a server on free ports. It ends with this process. Rejects with an error that ends with the server's log. */
export function startServer(options?: ServerOptions): Promise<Server>;

/** Sets KEYSPACES_HOST, KEYSPACES_PORT, KEYSPACES_ADMIN and KEYSPACES_API in the environment of this process and its children. */
export function exportAddresses(server: Server): void;
