// Package file is read_file, write_file and edit_file: the tools by which a
// model reads and changes text files of its workspace.
//
// It owns: the three tools, what counts as inside of the workspace, and how a
// file is replaced. It does not own the workspace: other programs, and the
// commands of bash, change it at the same time.
//
// # The workspace
//
// Every path is opened below the workspace's directory by os.Root: neither "..",
// nor an absolute path, nor a symbolic link leads out, whatever changes while a
// call runs. A link that stays inside is followed. An absolute path that names
// something inside is taken for that. Only regular files are read and written,
// so nothing here waits for a pipe or a device.
//
// # Writing
//
// A file is written beside the old one and renamed over it when it is on disk,
// with the old one's permissions: a reader sees the one or the other, and so does
// who comes after a crash. An edit replaces text that occurs exactly once; edits
// and writes of one Workspace run one after another, so that of two at once
// neither is lost.
//
// There are no timeouts: what is done is bounded in size.
//
// Concurrency: everything may be called concurrently. Limits: pathMax, readMax
// of a file that is read or edited, linesMax and outputMax of one answer, lineMax
// of one line shown, writeMax of what is written.
package file
