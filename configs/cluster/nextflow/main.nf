// Each row of a table of `tessera batch` as a task: docs/cluster.md.
//
//   nextflow run configs/cluster/nextflow --table screen.tsv --outdir runs/screen
//
// TESSERA_BATCH is a module as nf-core writes them: meta.id is the name of the
// row. The folder of a batch lies outside of Nextflow's work folder, so that a
// task that was killed is repeated (maxRetries) and continues.

process TESSERA_BATCH {
    tag "$meta.id"
    label 'process_medium'
    errorStrategy { task.exitStatus in [75, 130, 137, 143] ? 'retry' : 'finish' }
    maxRetries 3

    conda "conda-forge::tessera"
    container params.container ?: null

    input:
    tuple val(meta), val(source), val(folder)

    output:
    tuple val(meta), path("${meta.id}.json"), emit: row
    path "versions.yml"                     , emit: versions

    when:
    task.ext.when == null || task.ext.when

    script:
    def args = task.ext.args ?: ''
    """
    tessera batch '$source' -o '$folder' --only '$meta.id' --threads $task.cpus \\
        --json -- $args >'${meta.id}.json' || [ \$? -eq 1 ]

    cat <<-END_VERSIONS >versions.yml
    "${task.process}":
        tessera: \$(tessera --version | sed -n 's/^tessera \\([^ ]*\\).*/\\1/p')
    END_VERSIONS
    """

    stub:
    """
    touch '${meta.id}.json' versions.yml
    """
}

// The table of all rows, and its page.
process TESSERA_TABLE {
    container params.container ?: null

    input:
    path rows
    val source
    val folder

    output:
    path "batch.json", emit: table

    script:
    """
    tessera batch '$source' -o '$folder' --dry-run --json >batch.json
    """
}

params.table = null
params.outdir = 'runs/batch'
params.container = null

workflow {
    source = file(params.table, checkIfExists: true).toAbsolutePath()
    folder = file(params.outdir).toAbsolutePath()
    rows = Channel.fromPath(params.table)
        .splitCsv(sep: '\t', header: true)
        .filter { !it.name.startsWith('#') }
        .map { [[id: it.name], source, folder] }
    TESSERA_BATCH(rows)
    TESSERA_TABLE(TESSERA_BATCH.out.row.map { it[1] }.collect(), source, folder)
}
